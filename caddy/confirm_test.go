package caddy

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/einlass/einlass/dedup"
)

// sending delivers an event and gives its answer when there is one.
func (g *testGate) sending(next caddyhttp.HandlerFunc, event, body string) <-chan *httptest.ResponseRecorder {
	answer := make(chan *httptest.ResponseRecorder, 1)
	go func() { answer <- g.deliver(next, event, body) }()
	return answer
}

// working is an app that says which token it got, works for a while, and answers then.
func working(tokens chan<- string, work time.Duration, answer caddyhttp.HandlerFunc) caddyhttp.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		tokens <- r.Header.Get(headerToken)
		select {
		case <-time.After(work):
		case <-r.Context().Done():
			return r.Context().Err()
		}
		return answer(w, r)
	}
}

// status answers with a status, a verdict if there is one, and a text.
func status(code int, verdict, text string) caddyhttp.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) error {
		if verdict != "" {
			w.Header().Set(headerOutcome, verdict)
		}
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(code)
		_, err := io.WriteString(w, text)
		return err
	}
}

const saidDone = `{"outcome":"committed","status":201,"content_type":"text/plain","body":"done"}`

// wantDone holds that the answer is what saidDone says.
func wantDone(t *testing.T, what string, w *httptest.ResponseRecorder, duplicate bool) {
	t.Helper()
	if w.Code != 201 || w.Body.String() != "done" || w.Header().Get("Content-Type") != "text/plain" || (w.Header().Get(headerReceipt) == "duplicate") != duplicate {
		t.Fatalf("%s: got %d %s %v, want duplicate=%v", what, w.Code, w.Body, w.Header(), duplicate)
	}
}

// TestACallbackAnswersWhoWaitsAtOnce: before the app's answer and after it, whatever that answer is.
func TestACallbackAnswersWhoWaitsAtOnce(t *testing.T) {
	for _, c := range []struct {
		name   string
		after  time.Duration // of the callback
		answer caddyhttp.HandlerFunc
	}{
		{"before a 200", time.Second, status(200, "", "other")},
		{"after a 202", 3 * time.Second, status(202, "", "taken")},
		{"after pending", 3 * time.Second, status(202, "pending", "taken")},
		{"before a 500", time.Second, status(500, "", "broken")},
		{"before a redirect", time.Second, status(302, "", "")},
		{"before another verdict", time.Second, status(200, "aborted", "")},
		{"before a broken answer", time.Second, func(http.ResponseWriter, *http.Request) error { panic(http.ErrAbortHandler) }},
		{"before a lost connection", time.Second, func(http.ResponseWriter, *http.Request) error { return caddyhttp.Error(502, io.EOF) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := callbackGate(t, Handler{AnswerWithin: caddy.Duration(8 * time.Second)})
				tokens := make(chan string, 2)
				began := time.Now()
				app := working(tokens, 2*time.Second, c.answer)
				first := g.sending(app, "one", "{}")
				token := <-tokens
				waiting := g.sending(app, "one", "{}")
				time.Sleep(c.after)
				wantCode(t, "callback", g.confirm("one", token, saidDone), http.StatusOK, "")
				wantDone(t, "the sender", <-first, false)
				wantDone(t, "who waits", <-waiting, true)
				if took := time.Since(began); took != c.after {
					t.Errorf("answered after %s", took)
				}
				g.drain() // the app's answer comes and changes nothing
				wantDone(t, "a repeat", g.deliver(app, "one", "{}"), true)
				if r := g.stands("one"); r.Learned != dedup.LearnedCallback || len(tokens) != 0 {
					t.Errorf("learned by %s, %d further attempts", r.Learned, len(tokens))
				}
			})
		})
	}
}

func TestACallbackCountsAfterTheSenderWasAnswered(t *testing.T) {
	for name, after := range map[string]time.Duration{
		"while the app has not answered": 5 * time.Second, "before the lease's end": 30 * time.Second, "after it": time.Hour,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := callbackGate(t, Handler{AnswerWithin: caddy.Duration(3 * time.Second)})
				tokens := make(chan string, 2)
				app := working(tokens, 10*time.Second, status(202, "", ""))
				began := time.Now()
				w := g.deliver(app, "one", "{}")
				if wantCode(t, "the sender", w, 503, codeInProgress); time.Since(began) != 3*time.Second || w.Header().Get("Retry-After") == "" {
					t.Fatalf("after %s: %v", time.Since(began), w.Header())
				}
				time.Sleep(after - 3*time.Second)
				wantCode(t, "callback", g.confirm("one", <-tokens, saidDone), http.StatusOK, "")
				wantDone(t, "the next delivery", g.deliver(app, "one", "{}"), true)
				time.Sleep(time.Minute)
				synctest.Wait()
				wantDone(t, "a later one", g.deliver(app, "one", "{}"), true)
			})
		})
	}
}

// TestWithoutItsCallbackAnAcceptedEventIsWaitedFor: until answer_within, then in doubt after the lease.
func TestWithoutItsCallbackAnAcceptedEventIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := callbackGate(t, Handler{AnswerWithin: caddy.Duration(8 * time.Second), InDoubt: inDoubtRedeliver, Lease: caddy.Duration(70 * time.Second)})
		tokens := make(chan string, 9)
		app := working(tokens, 0, status(200, "", "taken"))
		began := time.Now()
		wantCode(t, "the sender", g.deliver(app, "one", "{}"), 503, codeInProgress)
		if took := time.Since(began); took != 8*time.Second {
			t.Fatalf("answered after %s", took)
		}
		began = time.Now()
		wantCode(t, "a repeat", g.deliver(app, "one", "{}"), 503, codeInProgress)
		if took := time.Since(began); took != 5*time.Second || len(tokens) != 1 {
			t.Fatalf("answered after %s, %d attempts", took, len(tokens))
		}
		time.Sleep(time.Minute)
		var flagged string
		second := g.sending(func(w http.ResponseWriter, r *http.Request) error {
			flagged = r.Header.Get(headerInDoubt)
			return app(w, r)
		}, "one", "{}")
		synctest.Wait()
		<-tokens
		wantCode(t, "callback of the second attempt", g.confirm("one", <-tokens, saidDone), http.StatusOK, "")
		wantDone(t, "the second attempt", <-second, false)
		if flagged != "true" {
			t.Errorf("%s is %q", headerInDoubt, flagged)
		}
	})
}

func TestAnEarlierAttemptsCallbackAnswersTheLaterOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := callbackGate(t, Handler{AnswerWithin: caddy.Duration(3 * time.Second)})
		tokens := make(chan string, 2)
		app := working(tokens, 2*time.Second, status(200, "", "taken"))
		wantCode(t, "the first sender", g.deliver(app, "one", "{}"), 503, codeInProgress)
		time.Sleep(2 * time.Minute) // its lease is over
		second := g.sending(app, "one", "{}")
		synctest.Wait()
		first := <-tokens
		began := time.Now()
		wantCode(t, "the first attempt's callback", g.confirm("one", first, saidDone), http.StatusOK, "")
		wantDone(t, "the second sender", <-second, true)
		if took := time.Since(began); took != 0 {
			t.Errorf("answered after %s", took)
		}
		wantCode(t, "the second attempt's own, the same", g.confirm("one", <-tokens, saidDone), http.StatusOK, "")
		g.drain()
	})
}

func TestAnAbortByCallbackFreesTheEventAtOnce(t *testing.T) {
	for name, config := range map[string]Handler{"confirm callback": {Confirm: "callback " + testCallback}, "confirm response": {}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newTestGate(t, config)
				tokens := make(chan string, 2)
				app := working(tokens, 2*time.Second, status(200, "committed", "done"))
				first := g.sending(app, "one", "{}")
				token := <-tokens
				waiting := g.sending(app, "one", "{}")
				synctest.Wait()
				wantCode(t, "callback", g.confirm("one", token, `{"outcome":"aborted"}`), http.StatusOK, "")
				for what, answer := range map[string]<-chan *httptest.ResponseRecorder{"the sender": first, "who waits": waiting} {
					w := <-answer
					if wantCode(t, what, w, 503, codeTemporaryFailure); w.Header().Get("Retry-After") == "" || w.Header().Get(headerReceipt) != "" {
						t.Fatalf("%s: %v", what, w.Header())
					}
				}
				// The app's 200 comes later, and is not believed.
				g.drain()
				if s := g.stands("one").State; s != dedup.StateOpen {
					t.Fatalf("the event is %s", s)
				}
				var calls []string
				g.deliver(func(w http.ResponseWriter, r *http.Request) error {
					calls = append(calls, r.Header.Get(headerAttempt)+r.Header.Get(headerInDoubt))
					return status(200, "committed", "done")(w, r)
				}, "one", "{}")
				if len(calls) != 1 || calls[0] != "2" || g.stands("one").State != dedup.StateCommitted {
					t.Errorf("next delivery: attempts %q, the event is %s", calls, g.stands("one").State)
				}
			})
		})
	}
}

func TestTheAppsWordInItsAnswerCountsInBothModes(t *testing.T) {
	for _, confirm := range []string{confirmResponse, "callback " + testCallback} {
		for _, c := range []struct {
			verdict string
			status  int
			want    int
			code    code
			state   dedup.State
		}{
			{"committed", 200, 200, "", dedup.StateCommitted},
			{"committed", 500, 500, "", dedup.StateCommitted},
			{"rejected", 422, 422, "", dedup.StateRejected},
			{"rejected", 200, 200, "", dedup.StateRejected},
			{"aborted", 200, 503, codeTemporaryFailure, dedup.StateOpen},
			{"aborted", 422, 422, "", dedup.StateOpen},
			{"pending", 202, 503, codeInProgress, dedup.StateReserved},
			{"pending", 500, 503, codeInProgress, dedup.StateReserved},
			{"Committed", 200, 503, codeInDoubt, dedup.StateReserved},
			{"", 500, 500, "", dedup.StateOpen},
			{"", 404, 404, "", dedup.StateOpen},
			{"", 307, 502, codeUpstreamRedirect, dedup.StateOpen},
		} {
			t.Run(confirm+" "+c.verdict+" "+http.StatusText(c.status), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					g := newTestGate(t, Handler{Confirm: confirm})
					w := g.deliver(status(c.status, c.verdict, "text"), "one", "{}")
					wantCode(t, "got", w, c.want, c.code)
					if s := g.stands("one").State; s != c.state {
						t.Errorf("the event is %s, want %s", s, c.state)
					}
					if w.Header().Get(headerOutcome) != "" || w.Header().Get(headerReceipt) != "" {
						t.Errorf("the sender got %v", w.Header())
					}
				})
			})
		}
	}
}

func TestASenderThatHangsUpWhileItsConfirmationIsAwaitedCancelsNothing(t *testing.T) {
	t.Parallel()
	g := callbackGate(t, Handler{})
	token := g.taken("one", "{}")
	wantCode(t, "callback", g.confirm("one", token, saidDone), http.StatusOK, "")
	wantDone(t, "a repeat", g.deliver(status(500, "", ""), "one", "{}"), true)
}
