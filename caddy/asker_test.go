package caddy

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/einlass/einlass/dedup"
)

// askerOf is an asker of the app that answers with respond.
func askerOf(t *testing.T, limits receiptLimits, respond http.HandlerFunc) *asker {
	t.Helper()
	server := httptest.NewServer(respond)
	t.Cleanup(server.Close)
	at, err := url.Parse(server.URL + "/outcome")
	if err != nil {
		t.Fatal(err)
	}
	a := newAsker(*at, limits)
	t.Cleanup(a.close)
	return a
}

func saying(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

var someQuestion = dedup.Question{Key: dedup.Key{Source: "github", Event: "one"}, Count: 2, Token: strings.Repeat("5e", 24)}

func TestWhatTheAppSaysToTheOutcomeQuestion(t *testing.T) {
	t.Parallel()
	limits := receiptLimits{16, []string{"Content-Type"}}
	typed := []dedup.Field{{Name: "Content-Type", Value: "text/plain"}}
	for _, c := range []struct {
		name    string
		respond http.HandlerFunc
		want    dedup.Reply
	}{
		{"committed", saying(200, `{"outcome":"committed","status":201,"content_type":"text/plain","body":"done"}`),
			dedup.Reply{Kind: dedup.ReplyCommitted, Answer: dedup.Answer{Status: 201, Header: typed, Body: []byte("done")}}},
		{"rejected", saying(200, `{"outcome":"rejected","status":422}`), dedup.Reply{Kind: dedup.ReplyRejected, Answer: dedup.Answer{Status: 422}}},
		{"pending", saying(200, `{"outcome":"pending"}`), dedup.Reply{Kind: dedup.ReplyPending}},
		{"aborted closes nothing", saying(200, `{"outcome":"aborted"}`), dedup.Reply{Kind: dedup.ReplyAbsent}},
		{"202", saying(202, "later"), dedup.Reply{Kind: dedup.ReplyPending}},
		{"404", saying(404, "no"), dedup.Reply{Kind: dedup.ReplyAbsent}},
		{"410", saying(410, ""), dedup.Reply{Kind: dedup.ReplyFenced}},
		{"a body above max_receipt is dropped, the word counts", saying(200, `{"outcome":"committed","body":"`+strings.Repeat("x", 500<<10)+`"}`),
			dedup.Reply{Kind: dedup.ReplyCommitted, Answer: dedup.Answer{Status: 200, BodyDropped: true}}},
		{"of no type", func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = nil
			saying(200, `{"outcome":"pending"}`)(w, nil)
		}, dedup.Reply{Kind: dedup.ReplyPending}},
		{"compressed", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			_, _ = io.WriteString(z, `{"outcome":"pending"}`)
			_ = z.Close()
		}, dedup.Reply{Kind: dedup.ReplyPending}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := askerOf(t, limits, c.respond).Ask(t.Context(), someQuestion)
			if err != nil || got.Kind != c.want.Kind || !got.Answer.Equal(c.want.Answer) {
				t.Errorf("got %+v, %v, want %+v", got, err, c.want)
			}
		})
	}
}

func TestWhatIsNoAnswerToTheOutcomeQuestion(t *testing.T) {
	t.Parallel()
	var elsewhere atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		elsewhere.Add(1)
		saying(200, `{"outcome":"committed"}`)(w, nil)
	}))
	t.Cleanup(func() {
		other.Close()
		if n := elsewhere.Load(); n != 0 {
			t.Errorf("%d redirects were followed", n)
		}
	})
	redirect := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", other.URL)
			saying(status, `{"outcome":"committed"}`)(w, nil)
		}
	}
	raw := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.WriteString(conn, text)
			_ = conn.Close()
		}
	}
	for _, c := range []struct {
		name        string
		respond     http.HandlerFunc
		unreachable bool // the app itself is in trouble, and its other events' questions wait, too
	}{
		{"204", saying(204, ""), false},
		{"201", saying(201, `{"outcome":"committed"}`), false},
		{"301", redirect(301), false},
		{"302", redirect(302), false},
		{"307", redirect(307), false},
		{"308", redirect(308), false},
		{"304", saying(304, ""), false},
		{"400", saying(400, `{"outcome":"committed"}`), false},
		{"401", saying(401, ""), false},
		{"405", saying(405, ""), false},
		{"500", saying(500, `{"outcome":"committed"}`), true},
		{"503", saying(503, ""), true},
		{"429", saying(429, ""), true},
		{"a 200 of nothing", saying(200, ""), false},
		{"a 200 of HTML", saying(200, "<html>private</html>"), false},
		{"a 200 of an unknown word", saying(200, `{"outcome":"private"}`), false},
		{"a 200 with a type that is none", saying(200, `{"outcome":"committed","content_type":"a\r\nprivate: b"}`), false},
		{"a huge 200", saying(200, `{"outcome":"committed","body":"`+strings.Repeat("x", 17<<20)+`"}`), false},
		{"one that inflates to a huge 200", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			blank := []byte(strings.Repeat(" ", 1<<20))
			for range 17 {
				_, _ = z.Write(blank)
			}
			_ = z.Close()
		}, false},
		{"a cut 200", raw("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"outcome\":\"committed\"}"), true},
		{"no answer", raw(""), true},
		{"nonsense", raw("private\r\n\r\n"), true},
		{"a status that is none", raw("HTTP/1.1 private OK\r\n\r\n"), true},
		{"endless headers", raw("HTTP/1.1 200 OK\r\n" + strings.Repeat("X: private\r\n", 20_000) + "\r\n"), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := askerOf(t, receiptLimits{16, nil}, c.respond).Ask(t.Context(), someQuestion)
			if err == nil || got.Kind != 0 || errors.Is(err, dedup.ErrUnreachable) != c.unreachable {
				t.Fatalf("got %+v, %v", got, err)
			}
			if strings.Contains(err.Error(), "private") || strings.Contains(err.Error(), someQuestion.Token) {
				t.Errorf("the error quotes the app: %v", err)
			}
		})
	}
}

func TestAnAppThatIsNotThereIsUnreachable(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := url.URL{Scheme: "http", Host: l.Addr().String(), Path: "/outcome"}
	_ = l.Close()
	a := newAsker(at, receiptLimits{})
	defer a.close()
	got, err := a.Ask(t.Context(), someQuestion)
	if !errors.Is(err, dedup.ErrUnreachable) || got.Kind != 0 || !strings.Contains(err.Error(), "connection refused") {
		t.Fatalf("got %+v, %v", got, err)
	}
	if strings.Contains(err.Error(), someQuestion.Token) || strings.Contains(err.Error(), "event=") {
		t.Errorf("the error says too much: %v", err)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// dripping gives a blank a second, until its request ends.
type dripping struct{ context.Context }

func (d dripping) Read(p []byte) (int, error) {
	select {
	case <-time.After(time.Second):
		p[0] = ' '
		return 1, nil
	case <-d.Done():
		return 0, d.Err()
	}
}
func (dripping) Close() error { return nil }

func TestAnAppThatAnswersTooSlowlyIsNotWaitedFor(t *testing.T) {
	for name, answer := range map[string]roundTrip{
		"no headers": func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		},
		"a body without end": func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Body: dripping{r.Context()}}, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newAsker(url.URL{Scheme: "http", Host: "app"}, receiptLimits{})
				a.client.Transport = answer
				began := time.Now()
				got, err := a.Ask(context.Background(), someQuestion)
				if took := time.Since(began); !errors.Is(err, dedup.ErrUnreachable) || got.Kind != 0 || took != askTimeout {
					t.Errorf("after %s: %+v, %v", took, got, err)
				}
			})
		})
	}
}

func TestTheQuestionNamesItsEventExactlyAndItsTokenInAHeaderOnly(t *testing.T) {
	t.Parallel()
	for _, key := range []dedup.Key{
		{Source: "github", Event: "one"}, {Source: "a&b=c", Event: "?x=y#z"}, {Source: "50%", Event: "%41%"}, {Source: "own source", Event: "a b+c"},
		{Source: "Zürich", Event: "日本/../x"}, {Source: "a;b", Event: `"\<>'`},
	} {
		t.Run(key.Event, func(t *testing.T) {
			t.Parallel()
			var got *http.Request
			a := askerOf(t, receiptLimits{}, func(w http.ResponseWriter, r *http.Request) {
				got = r
				w.WriteHeader(http.StatusAccepted)
			})
			a.at.RawQuery = "mine=1&event=forged"
			q := someQuestion
			q.Key = key
			if _, err := a.Ask(t.Context(), q); err != nil {
				t.Fatal(err)
			}
			query, err := url.ParseQuery(got.URL.RawQuery)
			if err != nil {
				t.Fatal(err)
			}
			want := url.Values{"mine": {"1"}, "source": {key.Source}, "event": {key.Event}}
			if query.Encode() != want.Encode() || got.Method != http.MethodGet || got.URL.Path != "/outcome" {
				t.Errorf("got %s %s", got.Method, got.URL)
			}
			if tokens := got.Header.Values(headerToken); len(tokens) != 1 || tokens[0] != q.Token || got.Header.Get(headerAttempt) != "2" || got.Header.Get("Accept") != "application/json" {
				t.Errorf("headers %v", got.Header)
			}
			if strings.Contains(got.RequestURI, q.Token) || got.ContentLength != 0 || got.Header.Get("Referer") != "" {
				t.Errorf("the token is in %q", got.RequestURI)
			}
		})
	}
	t.Run("an attempt of another seed", func(t *testing.T) {
		t.Parallel()
		a := askerOf(t, receiptLimits{}, func(w http.ResponseWriter, r *http.Request) {
			if _, ok := r.Header[headerToken]; ok {
				t.Error("an empty token was sent")
			}
			w.WriteHeader(http.StatusAccepted)
		})
		if _, err := a.Ask(t.Context(), dedup.Question{Key: dedup.Key{Source: "s", Event: "e"}}); err != nil {
			t.Fatal(err)
		}
	})
}

func TestTheQuestionUsesNoProxyOfTheEnvironment(t *testing.T) {
	t.Parallel()
	a := newAsker(url.URL{Scheme: "http", Host: "app.example"}, receiptLimits{})
	if transport, ok := a.client.Transport.(*http.Transport); !ok || transport.Proxy != nil {
		t.Error("the token may reach a proxy")
	}
}
