package caddy

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/einlass/einlass/dedup"
)

// testCallback is where the app of a testGate confirms.
const testCallback = "http://127.0.0.1:9081/confirm"

// callback is a callback handler of the gate's config.
func (g *testGate) callback() *Callback {
	return &Callback{app: g.app, logger: g.logger}
}

// confirmation builds what an app sends for one of the gate's events.
func (g *testGate) confirmation(event, token, body string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/confirm?"+url.Values{"source": {g.set.source}, "event": {event}}.Encode(), strings.NewReader(body))
	r.Header.Set(headerToken, token)
	return r
}

// confirm sends a confirmation.
func (g *testGate) confirm(event, token, body string) *httptest.ResponseRecorder {
	g.t.Helper()
	return g.said(g.confirmation(event, token, body))
}

func (g *testGate) said(r *http.Request) *httptest.ResponseRecorder {
	g.t.Helper()
	w := httptest.NewRecorder()
	if err := g.callback().ServeHTTP(w, r, nil); err != nil {
		g.t.Fatal(err)
	}
	return w
}

// accepted delivers an event to an app that takes it (202), and gives what that app got. The sender has hung up and
// nobody waits for the confirmation.
func (g *testGate) accepted(event, body string) http.Header {
	g.t.Helper()
	ctx, hangUp := context.WithCancel(context.Background())
	defer hangUp()
	g.prepare = func(r *http.Request) {
		inner, cancel := context.WithCancel(r.Context())
		context.AfterFunc(ctx, cancel)
		*r = *r.WithContext(inner)
	}
	defer func() { g.prepare = nil }()
	var got http.Header
	w := g.deliver(func(w http.ResponseWriter, r *http.Request) error {
		got = r.Header.Clone()
		w.WriteHeader(http.StatusAccepted)
		hangUp()
		return nil
	}, event, body)
	wantCode(g.t, "event "+event, w, http.StatusServiceUnavailable, codeInProgress)
	g.drain()
	return got
}

// taken is accepted, and gives the attempt's token.
func (g *testGate) taken(event, body string) (token string) {
	g.t.Helper()
	return g.accepted(event, body).Get(headerToken)
}

// drain waits until no attempt runs.
func (g *testGate) drain() {
	g.t.Helper()
	if err := g.gate().Drain(context.Background()); err != nil {
		g.t.Fatal(err)
	}
}

// gate is the protocol of the gate's store.
func (g *testGate) gate() *dedup.Gate {
	g.t.Helper()
	shared, err := g.app.hold()
	if err != nil {
		g.t.Fatal(err)
	}
	g.app.release() // the test holds it, too
	return shared.gate
}

// stands is the receipt of an event.
func (g *testGate) stands(event string) dedup.Receipt {
	g.t.Helper()
	r, _, err := g.store.Lookup(context.Background(), dedup.Identity{Key: dedup.Key{Source: g.set.source, Event: event}})
	if err != nil {
		g.t.Fatal(err)
	}
	return r
}

func wantCode(t *testing.T, what string, w *httptest.ResponseRecorder, status int, c code) {
	t.Helper()
	if w.Code != status || codeOf(t, w) != c {
		t.Fatalf("%s: got %d %s, want %d %q", what, w.Code, w.Body, status, c)
	}
}

// callbackGate is a gate whose app confirms by callback.
func callbackGate(t *testing.T, config Handler) *testGate {
	t.Helper()
	config.Confirm = "callback " + testCallback
	return newTestGate(t, config)
}
