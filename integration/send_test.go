package integration

import (
	"encoding/json"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"github.com/einlass/einlass/integration/internal/app"
)

// TestSendShowsFirstRepeatAndConflict runs the README's line, and runs it again: each time it is another event.
func TestSendShowsFirstRepeatAndConflict(t *testing.T) {
	behind := app.Start(t, app.Text(http.StatusOK, "ok"))
	g := startGate(t, behind.Addr, "")
	for range 2 {
		out, err := exec.CommandContext(t.Context(), exe, "webhook-gate", "send", "--provider", "github", "--secret", secret,
			"--repeat", "1", "--conflict", "--json", "http://"+g.addr+"/hook").Output()
		var rows []struct {
			Step, Code, Receipt string
			Status              int
		}
		if jsonErr := json.Unmarshal(out, &rows); err != nil || jsonErr != nil || len(rows) != 3 {
			t.Fatalf("%v, %v\n%s", err, jsonErr, out)
		}
		if r := rows[0]; r.Step != "first" || r.Status != 200 || r.Receipt != "" {
			t.Errorf("first: %+v", r)
		}
		if r := rows[1]; r.Step != "repeat" || r.Status != 200 || r.Receipt != "duplicate" {
			t.Errorf("repeat: %+v", r)
		}
		if r := rows[2]; r.Step != "conflict" || r.Status != 409 || r.Code != "event_conflict" {
			t.Errorf("conflict: %+v", r)
		}
	}
	if n := len(behind.Requests()); n != 2 {
		t.Errorf("the app was reached %d times, want 2", n)
	}
}

func TestSendInParallelReachesTheAppOnceAndShowsATable(t *testing.T) {
	behind := app.Start(t, app.Text(http.StatusOK, "ok"))
	g := startGate(t, behind.Addr, "")
	out, err := exec.CommandContext(t.Context(), exe, "webhook-gate", "send", "--provider", "github", "--secret", secret,
		"--parallel", "8", "http://"+g.addr+"/hook").Output()
	if err != nil || strings.Count(string(out), "200 OK") != 8 || strings.Count(string(out), "duplicate") != 7 {
		t.Fatalf("%v\n%s", err, out)
	}
	if n := len(behind.Requests()); n != 1 {
		t.Errorf("the app was reached %d times, want 1", n)
	}
}

func TestSendSaysWhatIsMissing(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--secret", "x", "http://127.0.0.1:1/"}, "--provider is missing"},
		{[]string{"--provider", "gihub", "--secret", "x", "http://127.0.0.1:1/"}, `did you mean "github"?`},
		{[]string{"--provider", "github", "http://127.0.0.1:1/"}, "--secret is missing"},
		{[]string{"--provider", "github", "--secret", "x"}, "send takes one URL"},
		{[]string{"--provider", "standard-webhooks", "--secret", "whsec_!!!!", "http://127.0.0.1:1/"}, "base64"},
	} {
		cmd := exec.CommandContext(t.Context(), exe, append([]string{"webhook-gate", "send"}, c.args...)...)
		cmd.Env = []string{"HOME=" + t.TempDir()}
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), c.want) || strings.Contains(string(out), "!!!!") {
			t.Errorf("%v: %v\n%s", c.args, err, out)
		}
	}
}
