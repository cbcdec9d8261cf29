package integration

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/einlass/einlass/integration/internal/app"
)

// counting answers with a text that differs at every call, so that a stored answer can be told from a new one.
func counting() http.HandlerFunc {
	var n atomic.Int64
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Set-Cookie", "session=1")
		app.Text(http.StatusCreated, "answer "+strconv.FormatInt(n.Add(1), 10))(w, r)
	}
}

func TestRepeatsGetTheFirstAnswerAlsoAfterRestarts(t *testing.T) {
	behind := app.Start(t, counting())
	g := startGate(t, behind.Addr, "")

	first := g.send(push("one", `{"a":1}`))
	want(t, "first", first, http.StatusCreated, "", false)
	want(t, "another event", g.send(push("two", `{"a":2}`)), http.StatusCreated, "", false)

	repeat := func(when string) {
		t.Helper()
		again := g.send(push("one", `{"a":1}`))
		want(t, when, again, http.StatusCreated, "", true)
		if again.Body != first.Body || again.Header.Get("Content-Type") != "text/plain" {
			t.Fatalf("%s: got %q, first was %q", when, again.Body, first.Body)
		}
		if again.Header.Get("Set-Cookie") != "" || first.Header.Get("Set-Cookie") != "" {
			t.Fatalf("%s: a cookie of the app reached the sender", when)
		}
		want(t, when+", other bytes", g.send(push("one", `{"a":1} `)), http.StatusConflict, "event_conflict", false)
	}
	repeat("repeat")
	if code := g.Stop(); code != 0 {
		t.Fatalf("SIGTERM: exit %d", code)
	}
	g.start()
	repeat("after SIGTERM")
	g.Kill()
	g.start()
	repeat("after kill -9")
	if n := len(behind.Requests()); n != 2 {
		t.Fatalf("the app was reached %d times, want 2", n)
	}
}

func TestParallelDeliveriesOfOneEventReachTheAppOnce(t *testing.T) {
	release := make(chan struct{})
	var n atomic.Int64
	behind := app.Start(t, func(w http.ResponseWriter, r *http.Request) {
		<-release
		app.Text(http.StatusOK, "answer "+strconv.FormatInt(n.Add(1), 10))(w, r)
	})
	g := startGate(t, behind.Addr, "")
	answers := make([]answer, 8)
	var wg sync.WaitGroup
	for i := range answers {
		wg.Go(func() { answers[i], _ = do(g.request(t.Context(), push("one", `{}`))) })
	}
	behind.Arrived()
	close(release)
	wg.Wait()
	duplicates := 0
	for _, a := range answers {
		if a.Status != http.StatusOK || a.Body != "answer 1" {
			t.Fatalf("got %+v", a)
		}
		if a.Duplicate {
			duplicates++
		}
	}
	if got := len(behind.Requests()); got != 1 || duplicates != 7 {
		t.Fatalf("the app was reached %d times, %d answers were repeats; want 1 and 7", got, duplicates)
	}
}

func TestTheSameBytesUnderAnotherUnsignedIDAreTheSameEvent(t *testing.T) {
	behind := app.Start(t, counting())
	g := startGate(t, behind.Addr, "")
	first := g.send(push("one", `{"a":1}`))
	again := g.send(push("forged", `{"a":1}`))
	want(t, "replayed under another id", again, http.StatusCreated, "", true)
	if again.Body != first.Body || len(behind.Requests()) != 1 {
		t.Fatalf("got %q and %d requests, first was %q", again.Body, len(behind.Requests()), first.Body)
	}
}

func TestTheAppGetsTheBytesAndTheGatesHeadersOnly(t *testing.T) {
	behind := app.Start(t, app.Text(http.StatusOK, "ok"))
	g := startGate(t, behind.Addr, "")
	body := "{\"a\": 1.0,\r\n \"b\":\"\\u00e9\"}\n"
	req := g.request(t.Context(), push("one", body))
	req.Header.Set("Webhook-Gate-Event", "forged")
	req.Header.Set("Webhook-Gate-Token", "forged")
	req.Header["Idempotency-Key"] = []string{"k"}
	a, err := do(req)
	if err != nil {
		t.Fatal(err)
	}
	want(t, "first", a, http.StatusOK, "", false)
	got := behind.Requests()[0]
	if got.Body != body {
		t.Fatalf("the app got %q, want %q", got.Body, body)
	}
	for name, value := range map[string]string{
		"Webhook-Gate-Source": "github", "Webhook-Gate-Event": "one", "Webhook-Gate-Type": "push",
		"Webhook-Gate-Attempt": "1", "Webhook-Gate-In-Doubt": "", "Idempotency-Key": "",
		"X-Github-Delivery": "one",
	} {
		if got.Header.Get(name) != value {
			t.Errorf("%s: got %q, want %q", name, got.Header.Get(name), value)
		}
	}
	if token := got.Header.Get("Webhook-Gate-Token"); len(token) != 48 || token == "forged" {
		t.Errorf("token: got %q", token)
	}
	if digest := got.Header.Get("Webhook-Gate-Digest"); !strings.HasPrefix(digest, "sha-256=:") {
		t.Errorf("digest: got %q", digest)
	}
}

func TestAStoppedGateWaitsForAnAttemptThatOutlivedItsAnswer(t *testing.T) {
	release := make(chan struct{})
	behind := app.Start(t, func(w http.ResponseWriter, r *http.Request) {
		<-release
		app.Text(http.StatusOK, "late")(w, r)
	})
	g := startGate(t, behind.Addr, "answer_within 300ms")
	a := g.send(push("one", `{}`))
	want(t, "slow app", a, http.StatusServiceUnavailable, "in_progress", false)
	if a.Header.Get("Retry-After") == "" {
		t.Fatal("no Retry-After")
	}
	g.Signal(syscall.SIGTERM)
	g.WaitLine("waiting for running attempts")
	close(release)
	if code := g.WaitExit(); code != 0 {
		t.Fatalf("exit %d", code)
	}
	g.start()
	a = g.send(push("one", `{}`))
	want(t, "repeat after the restart", a, http.StatusOK, "", true)
	if a.Body != "late" {
		t.Fatalf("got %q", a.Body)
	}
}

func TestAGateThatIsStoppedUnderSteadyTrafficEndsAndLosesNothing(t *testing.T) {
	behind := app.Start(t, func(w http.ResponseWriter, r *http.Request) {
		<-time.After(100 * time.Millisecond) // so that there is never a moment without a running attempt
		app.Text(http.StatusOK, r.Header.Get("Webhook-Gate-Event"))(w, r)
	})
	g := startGate(t, behind.Addr, "")
	stop := make(chan struct{})
	var mu sync.Mutex
	acknowledged := map[string]bool{}
	senders := steadily(stop, func(id string) bool {
		a, err := do(g.request(context.Background(), push(id, fmt.Sprintf(`{"id":%q}`, id))))
		if err != nil {
			return false // the gate is gone
		}
		mu.Lock()
		defer mu.Unlock()
		acknowledged[id] = a.Status == http.StatusOK
		return true
	})
	for range 16 {
		behind.Arrived()
	}
	code := g.Stop()
	close(stop)
	senders.Wait()
	if code != 0 {
		t.Fatalf("exit %d", code)
	}
	g.start()
	for id, ok := range acknowledged {
		if ok {
			want(t, "repeat of "+id, g.send(push(id, fmt.Sprintf(`{"id":%q}`, id))), http.StatusOK, "", true)
		}
	}
}
