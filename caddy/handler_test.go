package caddy

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/einlass/einlass/dedup"
	"github.com/einlass/einlass/verifier"
)

// testStore is a place for receipts in memory, whose writes a test can make fail.
type testStore struct {
	dedup.Store
	key  string
	fail atomic.Pointer[func(dedup.Transition) error]
	open error
}

var testStores atomic.Int64

func newTestStore() *testStore {
	return &testStore{Store: dedup.NewMemory(), key: "test" + string(rune('a'+testStores.Add(1)))}
}

func (*testStore) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "webhook_gate.stores.test"}
}
func (s *testStore) Key() string                { return s.key }
func (s *testStore) Open() (dedup.Store, error) { return s, s.open }

func (s *testStore) Apply(ctx context.Context, t dedup.Transition) (dedup.Result, error) {
	if fail := s.fail.Load(); fail != nil {
		if err := (*fail)(t); err != nil {
			return dedup.Result{}, err
		}
	}
	return s.Store.Apply(ctx, t)
}

// failing makes writes fail for which match is true.
func (s *testStore) failing(match func(dedup.Transition) bool) {
	fail := func(t dedup.Transition) error {
		if match(t) {
			return dedup.ErrUnavailable
		}
		return nil
	}
	s.fail.Store(&fail)
}

// testGate is a handler without a Caddy around it; its source is github.
type testGate struct {
	*Handler
	t       *testing.T
	store   *testStore
	prepare func(*http.Request) // what handlers before the gate do
}

func newTestGate(t *testing.T, config Handler) *testGate {
	t.Helper()
	store := newTestStore()
	h := &config
	preset, _ := verifier.LookupPreset("github")
	secret, err := verifier.NewSecret("s3cret", time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if h.verifier, err = preset.New(verifier.Options{Secrets: []verifier.Secret{secret}}); err != nil {
		t.Fatal(err)
	}
	h.facts = preset.Facts
	if h.set, err = h.resolve("github", h.facts); err != nil {
		t.Fatal(err)
	}
	h.logger = zap.NewNop()
	h.app = &App{
		logger: zap.NewNop(), store: store, key: store.key,
		sources: map[string]sourceUse{h.set.source: {callback: h.set.callback, policy: h.set.policy, limits: h.set.limits()}},
	}
	// Held for the whole test, so that the memory outlives each request.
	if _, err := h.app.hold(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.app.release)
	h.steps = h.way()
	return &testGate{Handler: h, t: t, store: store}
}

// deliver sends an event through the handler as Caddy would call it.
func (g *testGate) deliver(next caddyhttp.HandlerFunc, id, body string) *httptest.ResponseRecorder {
	g.t.Helper()
	r := httptest.NewRequest(http.MethodPost, "/hook", strings.NewReader(body))
	r.Header.Set("X-GitHub-Delivery", id)
	r.Header.Set("X-GitHub-Event", "push")
	signature, err := g.verifier.(verifier.Signer).Sign(verifier.Request{Method: r.Method, Header: r.Header, Now: time.Now()}, []byte(body))
	if err != nil {
		g.t.Fatal(err)
	}
	for name, values := range signature {
		r.Header[name] = values
	}
	w := httptest.NewRecorder()
	r = caddyhttp.PrepareRequest(r, caddy.NewReplacer(), w, new(caddyhttp.Server))
	if g.prepare != nil {
		g.prepare(r)
	}
	if err := g.ServeHTTP(w, r, next); err != nil {
		g.t.Fatal(err)
	}
	return w
}

func codeOf(t *testing.T, w *httptest.ResponseRecorder) code {
	t.Helper()
	var problem struct{ Code code }
	if w.Header().Get("Content-Type") != "application/problem+json" {
		return ""
	}
	if err := json.Unmarshal(w.Body.Bytes(), &problem); err != nil {
		t.Fatal(err)
	}
	return problem.Code
}

func answering(status int, text string, calls *atomic.Int64) caddyhttp.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) error {
		calls.Add(1)
		w.WriteHeader(status)
		_, err := w.Write([]byte(text))
		return err
	}
}

func TestNothingIsForwardedWhileTheStoreCannotWrite(t *testing.T) {
	t.Parallel()
	g := newTestGate(t, Handler{})
	g.store.failing(func(dedup.Transition) bool { return true })
	var calls atomic.Int64
	w := g.deliver(answering(200, "ok", &calls), "one", "{}")
	if w.Code != 503 || codeOf(t, w) != codeStoreUnavailable || w.Header().Get("Retry-After") == "" || calls.Load() != 0 {
		t.Fatalf("got %d %s, %d calls", w.Code, w.Body, calls.Load())
	}
	g.store.failing(func(dedup.Transition) bool { return false })
	if w = g.deliver(answering(200, "ok", &calls), "one", "{}"); w.Code != 200 {
		t.Fatalf("after the store recovered: got %d %s", w.Code, w.Body)
	}
}

func TestASuccessIsNotToldBeforeItsReceiptIsStored(t *testing.T) {
	t.Parallel()
	g := newTestGate(t, Handler{})
	g.store.failing(func(t dedup.Transition) bool { _, finish := t.(dedup.Finish); return finish })
	var calls atomic.Int64
	w := g.deliver(answering(200, "ok", &calls), "one", "{}")
	if w.Code != 503 || codeOf(t, w) != codeStoreUnavailable || calls.Load() != 1 {
		t.Fatalf("got %d %s, %d calls", w.Code, w.Body, calls.Load())
	}
	g.store.failing(func(dedup.Transition) bool { return false })
	w = g.deliver(answering(200, "ok", &calls), "one", "{}")
	if codeOf(t, w) != codeInDoubt || calls.Load() != 1 {
		t.Fatalf("the event is not in doubt: got %d %s, %d calls", w.Code, w.Body, calls.Load())
	}
}

func TestAStoreThatPanicsDoesNotEndTheProcess(t *testing.T) {
	t.Parallel()
	g := newTestGate(t, Handler{})
	g.store.failing(func(t dedup.Transition) bool {
		if _, finish := t.(dedup.Finish); finish {
			panic("a fault of the store")
		}
		return false
	})
	var calls atomic.Int64
	w := g.deliver(answering(200, "ok", &calls), "one", "{}")
	if w.Code != 503 || codeOf(t, w) != codeStoreUnavailable {
		t.Fatalf("got %d %s", w.Code, w.Body)
	}
	shared, err := g.app.hold()
	if err != nil {
		t.Fatal(err)
	}
	defer g.app.release()
	if n := shared.gate.Running(); n != 0 {
		t.Errorf("%d attempts are running", n)
	}
}

func TestHeadersThatConnectionNamesAreNotPassedOnAndCannotNameTheGates(t *testing.T) {
	t.Parallel()
	g := newTestGate(t, Handler{})
	g.prepare = func(r *http.Request) {
		r.Header["Connection"] = []string{"X-Hop, Webhook-Gate-Event", "keep-alive"}
		r.Header.Set("X-Hop", "1")
		r.Header.Set("X-End", "2")
	}
	var got http.Header
	g.deliver(func(w http.ResponseWriter, r *http.Request) error {
		got = r.Header.Clone()
		w.WriteHeader(http.StatusNoContent)
		return nil
	}, "one", "{}")
	if got.Get("X-Hop") != "" || got.Get("Connection") != "" || got.Get("X-End") != "2" || got.Get(headerEvent) != "one" {
		t.Errorf("got %v", got)
	}
}

func TestAStoreThatCannotBeOpenedFailsClosed(t *testing.T) {
	t.Parallel()
	g := newTestGate(t, Handler{})
	other := newTestStore()
	other.open = errors.New("no such disk")
	g.app = &App{logger: zap.NewNop(), store: other, key: other.key}
	var calls atomic.Int64
	w := g.deliver(answering(200, "ok", &calls), "one", "{}")
	if w.Code != 503 || codeOf(t, w) != codeStoreUnavailable || calls.Load() != 0 || strings.Contains(w.Body.String(), "disk") {
		t.Fatalf("got %d %s, %d calls", w.Code, w.Body, calls.Load())
	}
}

func TestTheSenderIsAnsweredWithinItsTimeAndTheAttemptGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTestGate(t, Handler{AnswerWithin: caddy.Duration(3 * time.Second)})
		slow := func(w http.ResponseWriter, r *http.Request) error {
			select {
			case <-time.After(10 * time.Second):
			case <-r.Context().Done():
				return r.Context().Err()
			}
			w.WriteHeader(http.StatusOK)
			_, err := w.Write([]byte("late"))
			return err
		}
		began := time.Now()
		w := g.deliver(slow, "one", "{}")
		if took := time.Since(began); took != 3*time.Second || codeOf(t, w) != codeInProgress || w.Header().Get("Retry-After") == "" {
			t.Fatalf("got %d %s after %s", w.Code, w.Body, took)
		}
		if w = g.deliver(slow, "one", "{}"); codeOf(t, w) != codeInProgress {
			t.Fatalf("while it runs: got %d %s", w.Code, w.Body)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		w = g.deliver(slow, "one", "{}")
		if w.Code != 200 || w.Body.String() != "late" || w.Header().Get(headerReceipt) != "duplicate" {
			t.Fatalf("after its end: got %d %s", w.Code, w.Body)
		}
	})
}

func TestARepeatWaitsForTheRunningAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTestGate(t, Handler{})
		slow := func(w http.ResponseWriter, _ *http.Request) error {
			time.Sleep(2 * time.Second)
			_, err := w.Write([]byte("done"))
			return err
		}
		first := make(chan *httptest.ResponseRecorder, 1)
		go func() { first <- g.deliver(slow, "one", "{}") }()
		synctest.Wait()
		again := g.deliver(slow, "one", "{}")
		if again.Code != 200 || again.Body.String() != "done" || again.Header().Get(headerReceipt) != "duplicate" {
			t.Fatalf("repeat: got %d %s", again.Code, again.Body)
		}
		if w := <-first; w.Body.String() != "done" || w.Header().Get(headerReceipt) != "" {
			t.Fatalf("first: got %d %s", w.Code, w.Body)
		}
	})
}

func TestAPanicBehindTheGateIsInDoubt(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]any{"an answer lost half-way": http.ErrAbortHandler, "a fault of the handler": "odd"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newTestGate(t, Handler{})
			w := g.deliver(func(w http.ResponseWriter, _ *http.Request) error {
				w.Header().Set("Set-Cookie", "a=b")
				w.WriteHeader(http.StatusOK)
				panic(value)
			}, "one", "{}")
			if codeOf(t, w) != codeInDoubt || w.Header().Get("Set-Cookie") != "" {
				t.Fatalf("got %d %s %v", w.Code, w.Body, w.Header())
			}
		})
	}
}

func TestAHandlerThatReadsTheBodyAsAPlaceholderLeavesItForTheApp(t *testing.T) {
	t.Parallel()
	g := newTestGate(t, Handler{})
	var placeholder, body string
	next := func(w http.ResponseWriter, r *http.Request) error {
		repl := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
		placeholder = repl.ReplaceAll("{http.request.body}", "")
		all, err := io.ReadAll(r.Body)
		body = string(all)
		w.WriteHeader(http.StatusNoContent)
		return err
	}
	g.deliver(next, "one", `{"a":1}`)
	if placeholder != `{"a":1}` || body != `{"a":1}` {
		t.Errorf("the placeholder gave %q, the app %q", placeholder, body)
	}
}

func TestARouteOfAGroupThatHasRunDoesNotRunBehindTheGate(t *testing.T) {
	t.Parallel()
	g := newTestGate(t, Handler{})
	var group map[string]struct{}
	next := func(w http.ResponseWriter, r *http.Request) error {
		group, _ = r.Context().Value(routeGroup).(map[string]struct{})
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	g.prepare = func(r *http.Request) {
		r.Context().Value(routeGroup).(map[string]struct{})["group0"] = struct{}{}
	}
	g.deliver(next, "one", "{}")
	if _, ok := group["group0"]; !ok {
		t.Errorf("the groups behind the gate are %v", group)
	}
}

func TestAHandlerThatIgnoresItsDeadlineIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTestGate(t, Handler{ForwardTimeout: caddy.Duration(2 * time.Second), AnswerWithin: caddy.Duration(8 * time.Second)})
		stuck := func(w http.ResponseWriter, _ *http.Request) error {
			time.Sleep(time.Minute)
			_, err := io.WriteString(w, "very late")
			return err
		}
		began := time.Now()
		w := g.deliver(stuck, "one", "{}")
		if took := time.Since(began); codeOf(t, w) != codeInDoubt || took != 3*time.Second {
			t.Fatalf("got %d %s after %s", w.Code, w.Body, took)
		}
		shared, err := g.app.hold()
		if err != nil {
			t.Fatal(err)
		}
		defer g.app.release()
		if n := shared.gate.Running(); n != 0 {
			t.Fatalf("%d attempts are running", n)
		}
		time.Sleep(time.Minute) // it comes back, and may still confirm
		synctest.Wait()
		if w = g.deliver(stuck, "one", "{}"); w.Code != 200 || w.Body.String() != "very late" {
			t.Fatalf("after it came back: got %d %s", w.Code, w.Body)
		}
	})
}

func TestAnAcceptedEventIsRepeatedThoughItsTypeIsNoLongerLetIn(t *testing.T) {
	t.Parallel()
	g := newTestGate(t, Handler{EventType: "header X-Type"})
	var calls atomic.Int64
	if w := g.deliver(answering(200, "ok", &calls), "one", "{}"); w.Code != 200 {
		t.Fatalf("got %d %s", w.Code, w.Body)
	}
	g.set.types = map[string]bool{"push": true} // as a reload with `events push` would
	if w := g.deliver(answering(200, "ok", &calls), "one", "{}"); w.Code != 200 || w.Header().Get(headerReceipt) != "duplicate" {
		t.Errorf("the repeat got %d %s", w.Code, w.Body)
	}
	if w := g.deliver(answering(200, "ok", &calls), "two", `{"b":2}`); codeOf(t, w) != codeEventContract {
		t.Errorf("a new event got %d %s", w.Code, w.Body)
	}
}

func TestHandlersBehindTheGateSeeWhatEarlierOnesSet(t *testing.T) {
	t.Parallel()
	g := newTestGate(t, Handler{})
	var got string
	next := func(w http.ResponseWriter, r *http.Request) error {
		repl := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
		got = repl.ReplaceAll("{http.request.header.Webhook-Gate-Event} {http.webhook_gate.event} {http.request.orig_uri.path}", "")
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	if w := g.deliver(next, "one", "{}"); w.Code != http.StatusNoContent || w.Body.Len() != 0 {
		t.Fatalf("got %d %q", w.Code, w.Body)
	}
	if got != "one one /hook" {
		t.Errorf("got %q", got)
	}
}
