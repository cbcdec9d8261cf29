package bolt

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/einlass/einlass/dedup"
	"github.com/einlass/einlass/dedup/deduptest"
)

var kills = flag.Int("kills", 20, "how often TestNothingAcknowledgedIsLostByAKill kills")

// crashFile, in the environment, makes the test binary the process that is killed.
const crashFile = "EINLASS_TEST_CRASH_FILE"

func TestMain(m *testing.M) {
	if path := os.Getenv(crashFile); path != "" {
		writeUntilKilled(path)
	}
	os.Exit(m.Run())
}

// writeUntilKilled takes events through reservation and commit (or abort), eight at a time, and says on stdout what
// it was told is durable.
func writeUntilKilled(path string) {
	s, err := Open(path, Options{Timeout: time.Minute})
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	var out sync.Mutex
	say := func(r dedup.Receipt) {
		out.Lock()
		defer out.Unlock()
		fmt.Println(r.State, r.Event, r.Attempt)
	}
	for worker := range 8 {
		go func() {
			for i := 0; ; i++ {
				id := deduptest.Guarded(fmt.Sprintf("%d-%d-%d", s.Incarnation(), worker, i), "")
				id.Digest = dedup.Digest{byte(s.Incarnation()), byte(s.Incarnation() >> 8), byte(worker), byte(i), byte(i >> 8)}
				res, err := s.Apply(context.Background(), deduptest.Reserve(id, 0, dedup.Redeliver))
				if err != nil {
					panic(err)
				}
				say(res.Receipt)
				res, err = s.Apply(context.Background(), deduptest.Finish(id.Key, res.Receipt.Attempt, dedup.Outcome(i%3), 0))
				if err != nil {
					panic(err)
				}
				say(res.Receipt)
			}
		}()
	}
	select {}
}

func TestNothingAcknowledgedIsLostByAKill(t *testing.T) {
	t.Parallel()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "receipts.db")
	acknowledged := map[string]string{} // event to the last state said, and its attempt
	lines := 0
	for n := range *kills {
		lines += runAndKill(t, exe, path, 1+rand.IntN(400), acknowledged)
		s, err := Open(path, Options{})
		if err != nil {
			t.Fatalf("after kill %d: %v", n+1, err)
		}
		for event, want := range acknowledged {
			r, found, err := s.Lookup(t.Context(), deduptest.Event(event, ""))
			// It may be one step ahead: committed, and killed before it could say so.
			if got := fmt.Sprint(r.State, " ", r.Attempt); err != nil || !found ||
				(got != want && !strings.HasPrefix(want, dedup.StateReserved.String())) {
				t.Fatalf("after kill %d: %s is %q (%v), acknowledged was %q", n+1, event, got, err, want)
			}
			alias := deduptest.Guarded("unknown", "")
			alias.Digest = r.Digest
			if a, _, err := s.Lookup(t.Context(), alias); err != nil || a.Event != event {
				t.Fatalf("after kill %d: the guard of %s leads to %q (%v)", n+1, event, a.Event, err)
			}
		}
		verify(t, s)
	}
	t.Logf("%d kills, %d transitions acknowledged, none lost", *kills, lines)
}

// runAndKill lets a child write, kills it after some lines, and notes what it has acknowledged.
func runAndKill(t *testing.T, exe, path string, after int, acknowledged map[string]string) (lines int) {
	t.Helper()
	child := exec.Command(exe)
	child.Env = append(os.Environ(), crashFile+"="+path)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	scanner := bufio.NewScanner(out)
	for scanner.Scan() { // to the end: what was written to the pipe was acknowledged
		var state, event, attempt string
		if n, _ := fmt.Sscan(scanner.Text(), &state, &event, &attempt); n != 3 || state == "error" {
			t.Errorf("the child says %q", scanner.Text())
		}
		acknowledged[event] = state + " " + attempt
		if lines++; lines == after {
			if err := child.Process.Kill(); err != nil {
				t.Error(err)
			}
		}
	}
	if err := child.Wait(); err == nil {
		t.Error("the child has ended by itself")
	}
	return lines
}
