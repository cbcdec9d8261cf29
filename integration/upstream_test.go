package integration

import (
	"context"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/einlass/einlass/integration/internal/app"
	"github.com/einlass/einlass/integration/internal/proc"
)

// until sends an event again and again, as long as the answer says when to come back, and gives the first
// answer that does not. It honours Retry-After, as a sender should, and gives up with the test's patience.
func (g *gate) until(e event) answer {
	g.t.Helper()
	for end := time.Now().Add(proc.Patience); time.Now().Before(end); {
		a := g.send(e)
		after, err := strconv.Atoi(a.Header.Get("Retry-After"))
		if a.Status != http.StatusServiceUnavailable || err != nil {
			return a
		}
		<-time.After(time.Duration(after) * time.Second)
	}
	g.t.Fatalf("event %s: no answer but 503", e.id)
	return answer{}
}

func TestAnAppThatRefusesConnectionsLosesNothing(t *testing.T) {
	nobody := proc.FreeAddr(t)
	g := startGate(t, nobody, "retry_after 7s")
	a := g.send(push("one", `{}`))
	want(t, "app down", a, http.StatusServiceUnavailable, "temporary_processing_failure", false)
	if got := a.Header.Get("Retry-After"); got != "7" {
		t.Fatalf("Retry-After %q, want 7", got)
	}
	behind := app.Start(t, app.Text(http.StatusOK, "ok"))
	g.write(behind.Addr, "")
	g.reload()
	want(t, "app up again", g.send(push("one", `{}`)), http.StatusOK, "", false)
	if got := behind.Requests()[0].Header; got.Get("Webhook-Gate-Attempt") != "2" || got.Get("Webhook-Gate-In-Doubt") != "" {
		t.Fatalf("attempt %q, in doubt %q; want 2 and none: nothing had been sent", got.Get("Webhook-Gate-Attempt"), got.Get("Webhook-Gate-In-Doubt"))
	}
}

func TestTheAppsOwnFailureIsPassedOnAndFreesTheEvent(t *testing.T) {
	for _, c := range []struct {
		name       string
		app        http.HandlerFunc
		status     int
		code       string
		body       string
		retryAfter string
	}{
		{"a 500 without Retry-After gets one", app.Text(500, "broken"), 500, "", "broken", "30"},
		{"a 429 without Retry-After gets one", app.Text(429, "slow down"), 429, "", "slow down", "30"},
		{"a 503 keeps its own Retry-After", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", "3")
			app.Text(503, "later")(w, r)
		}, 503, "", "later", "3"},
		{"a 422 is passed on", app.Text(422, "no such thing"), 422, "", "no such thing", ""},
		{"a 410 is passed on", app.Text(410, "gone"), 410, "", "gone", ""},
		{"a redirect is never passed on", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(http.StatusPermanentRedirect)
		}, 502, "upstream_redirect", "", "30"},
	} {
		t.Run(c.name, func(t *testing.T) {
			behind := app.Start(t, c.app)
			g := startGate(t, behind.Addr, "receipt_headers Content-Type X-Own")
			a := g.send(push("one", `{}`))
			want(t, "failing", a, c.status, c.code, false)
			if c.code == "" && a.Body != c.body {
				t.Errorf("body %q, want %q", a.Body, c.body)
			}
			if got := a.Header.Get("Retry-After"); got != c.retryAfter {
				t.Errorf("Retry-After %q, want %q", got, c.retryAfter)
			}
			if a.Header.Get("Location") != "" {
				t.Error("the app's Location reached the sender")
			}
			behind.Script(app.Text(http.StatusOK, "ok"))
			want(t, "next delivery", g.send(push("one", `{}`)), http.StatusOK, "", false)
			want(t, "repeat", g.send(push("one", `{}`)), http.StatusOK, "", true)
			if n := len(behind.Requests()); n != 2 {
				t.Errorf("the app was reached %d times, want 2", n)
			}
		})
	}
}

func TestAnAttemptWhoseEndNobodySawGoesAgainAfterItsLeaseFlagged(t *testing.T) {
	behind := app.Start(t, app.Cut)
	g := startGate(t, behind.Addr, "forward_timeout 1s\n lease 6s\n in_doubt redeliver")
	a := g.send(push("one", `{}`))
	want(t, "cut", a, http.StatusServiceUnavailable, "in_doubt", false)
	behind.Script(app.Text(http.StatusOK, "ok"))
	want(t, "before the lease's end", g.send(push("one", `{}`)), http.StatusServiceUnavailable, "in_doubt", false)
	if n := len(behind.Requests()); n != 1 {
		t.Fatalf("the app was reached %d times before the lease's end, want 1", n)
	}
	want(t, "after the lease's end", g.until(push("one", `{}`)), http.StatusOK, "", false)
	if got := behind.Requests()[1].Header.Get("Webhook-Gate-In-Doubt"); got != "true" {
		t.Fatalf("Webhook-Gate-In-Doubt %q, want true", got)
	}
}

func TestAHungAppIsGivenUpAfterForwardTimeoutAndIsInDoubt(t *testing.T) {
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	behind := app.Start(t, func(http.ResponseWriter, *http.Request) { <-release })
	g := startGate(t, behind.Addr, "forward_timeout 500ms\n in_doubt hold\n lease 5500ms")
	want(t, "hung", g.send(push("one", `{}`)), http.StatusServiceUnavailable, "in_doubt", false)
	behind.Script(app.Text(http.StatusOK, "ok"))
	g.WaitLine(`"reason":"forward_timeout is over`)
	a := g.send(push("one", `{}`))
	want(t, "in doubt", a, http.StatusServiceUnavailable, "in_doubt", false)
	after, err := strconv.Atoi(a.Header.Get("Retry-After"))
	if err != nil || after > 6 {
		t.Fatalf("Retry-After %q, want the rest of the lease", a.Header.Get("Retry-After"))
	}
	<-time.After(time.Duration(after) * time.Second)
	a = g.send(push("one", `{}`))
	want(t, "held", a, http.StatusServiceUnavailable, "in_doubt", false)
	g.WaitLine(`"result":"held"`)
	if n := len(behind.Requests()); n != 1 {
		t.Fatalf("the app was reached %d times, want 1: a person decides", n)
	}
}

func TestASenderThatHangsUpDoesNotCancelTheApp(t *testing.T) {
	release := make(chan struct{})
	finished := make(chan error, 1)
	behind := app.Start(t, func(w http.ResponseWriter, r *http.Request) {
		<-release
		finished <- r.Context().Err()
		app.Text(http.StatusOK, "done")(w, r)
	})
	g := startGate(t, behind.Addr, "")
	ctx, hangUp := context.WithCancel(t.Context())
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = do(g.request(ctx, push("one", `{}`)))
	}()
	behind.Arrived()
	hangUp()
	<-gone
	close(release)
	if err := <-finished; err != nil {
		t.Fatalf("the app's request was cancelled: %v", err)
	}
	a := g.send(push("one", `{}`))
	want(t, "repeat", a, http.StatusOK, "", true)
	if a.Body != "done" {
		t.Fatalf("got %q", a.Body)
	}
}

func TestAnAnswerAboveMaxReceiptIsDroppedForTheFirstAndItsRepeats(t *testing.T) {
	behind := app.Start(t, app.Text(http.StatusOK, "0123456789"))
	g := startGate(t, behind.Addr, "max_receipt 9B")
	for _, duplicate := range []bool{false, true} {
		a := g.send(push("one", `{}`))
		want(t, "delivery", a, http.StatusOK, "", duplicate)
		if a.Body != "" || a.Header.Get("Webhook-Gate-Receipt-Body") != "dropped" {
			t.Fatalf("got body %q and header %q", a.Body, a.Header.Get("Webhook-Gate-Receipt-Body"))
		}
	}
}
