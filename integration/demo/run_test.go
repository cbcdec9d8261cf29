package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The control: in front of the same app, something that only forwards. The story must find it out.
func TestStoryFindsOutAGateThatOnlyForwards(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for retries")
	}
	t.Parallel()
	report, err := Run(t.Context(), Options{Gate: self(t)[0], App: self(t, "app")})
	if err != nil {
		t.Fatal(err)
	}
	if report.holds() || report.Requests < 35 || report.Conditions < 55 {
		t.Errorf("%d requests, %d conditions, %d failed", report.Requests, report.Conditions, report.Failed)
	}
	failed := map[string]bool{}
	steps := map[string]bool{}
	for _, step := range report.Steps {
		if steps[step.Name] {
			t.Errorf("two steps are called %q", step.Name)
		}
		steps[step.Name] = true
		for _, c := range step.Conditions {
			failed[step.Name+": "+c.Name] = !c.OK
		}
	}
	for condition, want := range map[string]bool{
		"first delivery: the counter has grown by 5":                                             false,
		"first delivery: the outcome has the attempt's token":                                    true,
		"the same event in another delivery: it is marked as a repeat":                           true,
		"the same event in another delivery: the app was not called":                             true,
		"the same id with another value: the answer is 409 event_conflict":                       true,
		"eight deliveries at once, the app is slow: all but one are marked as repeats":           true,
		"eight deliveries at once, the app is slow: the app was called once":                     true,
		"the app fails before its commit: it asks for another try":                               true,
		"the app commits, its answer is lost: the answer is 503":                                 true,
		"the sender tries again after hanging up: it is marked as a repeat":                      true,
		"repeat after kill -9: the app was not called":                                           true,
		"a wrong signature: the answer is 401 authentication":                                    true,
		"a wrong signature: the counter is unchanged":                                            true,
		"a wrong signature: the app was not called":                                              true,
		"signed 301 s ago: the counter is unchanged":                                             true,
		"a name that stands twice: the answer is 400 invalid_json":                               true,
		"a field too many: the counter is unchanged":                                             true,
		"8193 bytes: the answer is 413 body_size":                                                true,
		"8192 bytes, and the largest value: the counter has grown by 100":                        false,
		"the sender tries again after the kill: it gives the counter as it was after the effect": false,
	} {
		if got, judged := failed[condition]; !judged || got != want {
			t.Errorf("%s: failed %v, judged %v", condition, got, judged)
		}
	}
}

func TestRunStopsWhatItStartedWhenItIsInterrupted(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancelCause(t.Context())
	defer interrupt(nil)
	ctrlC := errors.New("interrupt signal received")
	steps := 0
	report, err := Run(ctx, Options{Gate: self(t)[0], App: self(t, "app"), Keep: true, Progress: func(string) {
		if steps++; steps == 3 {
			interrupt(ctrlC)
		}
	}})
	t.Cleanup(func() { _ = os.RemoveAll(report.Dir) })
	if !errors.Is(err, ctrlC) || report.Error == "" || len(report.Steps) == 0 {
		t.Errorf("got %v after %d steps: %q", err, len(report.Steps), report.Error)
	}
	for _, name := range []string{"Caddyfile", "counter.db", "gate.log", "app.log"} {
		if _, err := os.Stat(filepath.Join(report.Dir, name)); err != nil {
			t.Errorf("kept: %v", err)
		}
	}
	config, err := os.ReadFile(filepath.Join(report.Dir, "Caddyfile"))
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", gateAddress(config))
	if err != nil {
		t.Fatalf("the gate's port is still taken: %v", err)
	}
	_ = listener.Close()
}

func TestRunWithoutAGate(t *testing.T) {
	t.Parallel()
	report, err := Run(t.Context(), Options{Gate: filepath.Join(t.TempDir(), "missing"), App: self(t, "app")})
	if err == nil || !strings.Contains(err.Error(), "start the gate") || report.Error != err.Error() || report.holds() {
		t.Errorf("got %v, %+v", err, report)
	}
}

func TestCommandFailsAndReportsAsJSON(t *testing.T) {
	t.Parallel()
	var out, progress bytes.Buffer
	command := Command()
	command.SetArgs([]string{"--json", "--gate", filepath.Join(t.TempDir(), "missing")})
	command.SetOut(&out)
	command.SetErr(&progress)
	command.SilenceErrors = true
	err := command.ExecuteContext(t.Context())
	var report Report
	if jsonErr := json.Unmarshal(out.Bytes(), &report); jsonErr != nil {
		t.Fatalf("%v: %s", jsonErr, out.String())
	}
	if err == nil || report.Error == "" || progress.Len() > 0 {
		t.Errorf("got %v, %+v, %q", err, report, progress.String())
	}
}
