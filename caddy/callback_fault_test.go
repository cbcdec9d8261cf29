package caddy

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/einlass/einlass/dedup"
)

func TestAConfirmationThatCannotBeStoredIsNotAcknowledged(t *testing.T) {
	t.Parallel()
	g := callbackGate(t, Handler{})
	token := g.taken("one", "{}")
	const said = `{"outcome":"committed","body":"done"}`
	g.store.failing(func(t dedup.Transition) bool { _, ok := t.(dedup.Confirm); return ok })
	w := g.confirm("one", token, said)
	wantCode(t, "the store cannot write", w, http.StatusServiceUnavailable, codeStoreUnavailable)
	if w.Header().Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	if s := g.stands("one").State; s != dedup.StateReserved {
		t.Fatalf("the event is %s", s)
	}
	g.store.failing(func(dedup.Transition) bool { return false })
	wantCode(t, "said again", g.confirm("one", token, said), http.StatusOK, "")

	other := newTestStore()
	other.open = errors.New("no such disk")
	c := &Callback{app: &App{logger: zap.NewNop(), store: other, key: other.key}, logger: zap.NewNop()}
	w = httptest.NewRecorder()
	if err := c.ServeHTTP(w, g.confirmation("one", token, said), nil); err != nil {
		t.Fatal(err)
	}
	wantCode(t, "a store that cannot be opened", w, http.StatusServiceUnavailable, codeStoreUnavailable)
	if strings.Contains(w.Body.String(), "disk") {
		t.Errorf("the answer says too much: %s", w.Body)
	}
}

// hangingUp is an app that goes as soon as its confirmation was read.
type hangingUp struct {
	io.Reader
	hangUp context.CancelFunc
}

func (h hangingUp) Read(p []byte) (int, error) {
	n, err := h.Reader.Read(p)
	if errors.Is(err, io.EOF) {
		h.hangUp()
	}
	return n, err
}

func (hangingUp) Close() error { return nil }

// contextStore counts the steps whose context has ended before they begin.
type contextStore struct {
	dedup.Store
	applied, ended int
}

func (s *contextStore) Apply(ctx context.Context, t dedup.Transition) (dedup.Result, error) {
	s.applied++
	if ctx.Err() != nil {
		s.ended++
	}
	return s.Store.Apply(ctx, t)
}

func TestWhatAnAppHasSaidIsStoredThoughItHangsUp(t *testing.T) {
	t.Parallel()
	g := callbackGate(t, Handler{})
	token := g.taken("one", "{}")
	probe := &contextStore{Store: g.store.Store}
	g.store.Store = probe
	r := g.confirmation("one", token, "")
	ctx, cancel := context.WithCancel(r.Context())
	r = r.WithContext(ctx)
	r.Body, r.ContentLength = hangingUp{strings.NewReader(`{"outcome":"committed","body":"done"}`), cancel}, -1
	wantCode(t, "got", g.said(r), http.StatusOK, "")
	if ctx.Err() == nil || probe.applied == 0 || probe.ended > 0 {
		t.Fatalf("%d of %d steps had a context that has ended", probe.ended, probe.applied)
	}
	if s := g.stands("one").State; s != dedup.StateCommitted {
		t.Fatalf("the event is %s", s)
	}
}

// pipes is a listener of connections in memory, which a bubble of synctest can wait for.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error { close(p.done); return nil }

func (*pipes) Addr() net.Addr { return &net.UnixAddr{} }

func TestAConfirmationThatComesTooSlowlyIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := callbackGate(t, Handler{})
		token := g.taken("one", "{}")
		l := &pipes{make(chan net.Conn), make(chan struct{})}
		c := g.callback()
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _ = c.ServeHTTP(w, r, nil) })}
		ended := make(chan struct{})
		go func() { _ = server.Serve(l); close(ended) }()
		ours, theirs := net.Pipe()
		l.conns <- theirs
		head := "POST /confirm?source=github&event=one HTTP/1.1\r\nHost: a\r\n" + headerToken + ": " + token + "\r\nContent-Length: 23\r\n\r\n"
		began := time.Now()
		go func() { _, _ = io.WriteString(ours, head+`{"outcome":"commit`) }()
		answer, err := io.ReadAll(ours) // to its end: the connection is not kept
		if took := time.Since(began); err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 408 ") || took < callbackTimeout || took > callbackTimeout+2*lingering {
			t.Errorf("after %s: %v %q", took, err, answer)
		}
		if s := g.stands("one").State; s != dedup.StateReserved {
			t.Errorf("the event is %s", s)
		}
		_ = ours.Close()
		_ = server.Close()
		<-ended
	})
}

func TestNoLogLineHoldsATokenOrABody(t *testing.T) {
	t.Parallel()
	g := callbackGate(t, Handler{})
	core, logs := observer.New(zapcore.DebugLevel)
	g.logger = zap.New(core)
	tokens := []string{g.taken("one", `{"a":"payload"}`), g.taken("two", `{"b":"payload"}`)}
	for _, body := range []string{
		`{"outcome":"committed","content_type":"x/hidden","body":"hidden"}`, `{"outcome":"committed","body":"hidden"}`, `{"outcome":"hidden"}`, `hidden`,
		`{"hidden":"hidden"`, `{"outcome":"hidden","outcome":"hidden"}`, `{"outcome":"committed","status":"hidden"}`,
	} {
		for _, token := range tokens {
			g.confirm("one", token, body)
		}
	}
	g.confirm(strings.Repeat("hidden", 100), tokens[0], "{}") // no id: too long
	g.store.failing(func(dedup.Transition) bool { return true })
	g.confirm("two", tokens[1], `{"outcome":"committed","body":"hidden"}`)
	if logs.Len() < 15 {
		t.Fatalf("%d lines", logs.Len())
	}
	for _, line := range logs.All() {
		text, err := zapcore.NewJSONEncoder(zapcore.EncoderConfig{MessageKey: "msg"}).EncodeEntry(line.Entry, line.Context)
		if err != nil {
			t.Fatal(err)
		}
		for _, no := range append(tokens, "hidden", "payload") {
			if strings.Contains(text.String(), no) {
				t.Errorf("%q is in %s", no, text)
			}
		}
	}
}
