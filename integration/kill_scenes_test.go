package integration

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/einlass/einlass/dedup/failpoint"
	"github.com/einlass/einlass/integration/internal/app"
	"github.com/einlass/einlass/integration/internal/proc"
)

// scene is a way of an event that the counter never goes: the gate is killed before and after one step of it.
type scene struct {
	name          string
	words         string
	outcome       http.HandlerFunc // the app's answer to the outcome question
	before, after string
	status        int    // of a delivery after that
	code          string // likewise
}

var scenes = []scene{
	{
		name: "hold", words: "in_doubt hold", outcome: http.NotFound, // is not asked
		before: failpoint.HoldBefore, after: failpoint.HoldAfter,
		status: http.StatusServiceUnavailable, code: "in_doubt",
	},
	{
		name: "pending", words: "outcome http://APP/webhook-outcome",
		outcome: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) },
		before:  failpoint.ExtendBefore, after: failpoint.ExtendAfter,
		status: http.StatusOK,
	},
}

// play lets the app lose its answer, so that the event is in doubt, and the gate die at the step that follows.
func (s scene) play(t *testing.T, killable string) {
	asking := func(outcome http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				outcome(w, r)
				return
			}
			app.Cut(w, r)
		}
	}
	behind := app.Start(t, asking(s.outcome))
	site := newSite(t, behind.Addr, s.words)
	gate := site.gate(killable)
	gate.mustStart(s.before + ":1")
	waitListening(t, site.addr)
	e := push("one", `{"id":"one"}`)
	first, err := do(signed(t, t.Context(), site.url(), e))
	if err != nil {
		t.Fatal(err)
	}
	want(t, "first", first, http.StatusServiceUnavailable, "in_doubt", false)
	gate.mustDie(s.before)
	gate.mustStart(s.after + ":1")
	gate.mustDie(s.after)

	behind.Script(asking(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"outcome":"committed","status":200,"body":"done"}`)
	}))
	gate.mustStart("record")
	waitListening(t, site.addr)
	var again answer
	for end := time.Now().Add(proc.Patience); ; <-time.After(150 * time.Millisecond) { // the gate may have asked a moment ago
		if again, err = do(signed(t, t.Context(), site.url(), e)); err != nil {
			t.Fatal(err)
		}
		if again.Status == s.status || !time.Now().Before(end) {
			break
		}
	}
	want(t, "after the kills", again, s.status, s.code, s.code == "")
	forwarded := 0
	for _, r := range behind.Requests() {
		if r.Header.Get("Webhook-Gate-Digest") != "" {
			forwarded++
		}
	}
	passed := gate.output()
	if forwarded != 1 || !strings.Contains(passed, "passed "+failpoint.DeliveryArrived) || strings.Contains(passed, "passed "+failpoint.ForwardBefore) {
		t.Fatalf("the app was reached %d times, want 1; the last process:\n%s", forwarded, passed)
	}
}
