package caddy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/einlass/einlass/dedup"
)

// asked is an app's answers to the outcome question.
type asked func(dedup.Question) (dedup.Reply, error)

func (a asked) Ask(_ context.Context, q dedup.Question) (dedup.Reply, error) { return a(q) }

func TestAFailureIsAskedAboutBeforeItIsBelieved(t *testing.T) {
	done := dedup.Answer{Status: 201, Header: []dedup.Field{{Name: "Content-Type", Value: "text/plain"}}, Body: []byte("done")}
	for _, confirm := range []string{confirmResponse, "callback " + testCallback} {
		for _, c := range []struct {
			name  string
			reply dedup.Reply
			err   error
			want  int
			code  code
			state dedup.State
		}{
			{"committed", dedup.Reply{Kind: dedup.ReplyCommitted, Answer: done}, nil, 201, "", dedup.StateCommitted},
			{"rejected", dedup.Reply{Kind: dedup.ReplyRejected, Answer: done}, nil, 201, "", dedup.StateRejected},
			{"unknown", dedup.Reply{Kind: dedup.ReplyAbsent}, nil, 500, "", dedup.StateOpen},
			{"unknown and fenced", dedup.Reply{Kind: dedup.ReplyFenced}, nil, 500, "", dedup.StateOpen},
			{"at work", dedup.Reply{Kind: dedup.ReplyPending}, nil, 503, codeInProgress, dedup.StateReserved},
			{"no answer", dedup.Reply{}, dedup.ErrUnreachable, 503, codeInDoubt, dedup.StateReserved},
			{"nonsense", dedup.Reply{}, errors.New("nonsense"), 503, codeInDoubt, dedup.StateReserved},
		} {
			t.Run(confirm+", "+c.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					g := newTestGate(t, Handler{Confirm: confirm, Outcome: "http://127.0.0.1:1/outcome"})
					var token string
					var questions []dedup.Question
					g.set.policy.Asker = asked(func(q dedup.Question) (dedup.Reply, error) {
						questions = append(questions, q)
						return c.reply, c.err
					})
					w := g.deliver(func(w http.ResponseWriter, r *http.Request) error {
						token = r.Header.Get(headerToken)
						return status(500, "", "broken")(w, r)
					}, "one", "{}")
					wantCode(t, "got", w, c.want, c.code)
					if len(questions) != 1 || questions[0].Token != token || questions[0].Count != 1 {
						t.Fatalf("asked %v", questions)
					}
					stands := g.stands("one")
					if stands.State != c.state {
						t.Fatalf("the event is %s, want %s", stands.State, c.state)
					}
					if learned := stands.State.Final(); (w.Header().Get(headerReceipt) == "duplicate") != learned {
						t.Errorf("the sender got %v", w.Header())
					}
					if c.want == 500 && (w.Body.String() != "broken" || w.Header().Get("Retry-After") == "") {
						t.Errorf("the app's own failure became %s %v", w.Body, w.Header())
					}
					// An attempt that is not closed may still confirm, and a closed one must roll back.
					status, want := http.StatusOK, code("")
					switch c.reply.Kind {
					case dedup.ReplyFenced:
						status, want = http.StatusConflict, codeAttemptClosed
					case dedup.ReplyRejected:
						status, want = http.StatusConflict, codeReceiptDiffers
					}
					wantCode(t, "callback", g.confirm("one", token, saidDone), status, want)
				})
			})
		}
	}
}

// TestAVerdictIsNotAskedAbout: the app has said what it had to say.
func TestAVerdictIsNotAskedAbout(t *testing.T) {
	t.Parallel()
	for _, verdict := range []string{"committed", "aborted", "rejected", "pending"} {
		g := newTestGate(t, Handler{Outcome: "http://127.0.0.1:1/outcome"})
		g.set.policy.Asker = asked(func(dedup.Question) (dedup.Reply, error) {
			t.Errorf("%s was asked about", verdict)
			return dedup.Reply{}, dedup.ErrUnreachable
		})
		g.deliver(status(500, verdict, ""), "one", "{}")
	}
}

// TestADeliveryOfAnEventInDoubtAsks: at once, and gets what was learned as a repeat.
func TestADeliveryOfAnEventInDoubtAsks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		reply dedup.Reply
		err   error
		want  int
		code  code
		again bool // forwarded
	}{
		{"committed", dedup.Reply{Kind: dedup.ReplyCommitted, Answer: dedup.Answer{Status: 201, Body: []byte("done")}}, nil, 201, "", false},
		{"unknown", dedup.Reply{Kind: dedup.ReplyAbsent}, nil, 200, "", true},
		{"unknown and fenced", dedup.Reply{Kind: dedup.ReplyFenced}, nil, 200, "", true},
		{"at work", dedup.Reply{Kind: dedup.ReplyPending}, nil, 503, codeInDoubt, false},
		{"no answer", dedup.Reply{}, dedup.ErrUnreachable, 503, codeInDoubt, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g := newTestGate(t, Handler{Outcome: "http://127.0.0.1:1/outcome"})
			g.set.policy.Asker = asked(func(dedup.Question) (dedup.Reply, error) { return c.reply, c.err })
			lost := func(http.ResponseWriter, *http.Request) error { return caddyhttp.Error(502, io.EOF) }
			wantCode(t, "the answer is lost", g.deliver(lost, "one", "{}"), 503, codeInDoubt)
			forwarded, flagged := false, ""
			w := g.deliver(func(w http.ResponseWriter, r *http.Request) error {
				forwarded, flagged = true, r.Header.Get(headerInDoubt)
				return status(200, "", "ok")(w, r)
			}, "one", "{}")
			wantCode(t, "next delivery", w, c.want, c.code)
			if forwarded != c.again || (w.Header().Get(headerReceipt) == "duplicate") != (c.want == 201) {
				t.Errorf("forwarded %v, %v", forwarded, w.Header())
			}
			// An unfenced "unknown" leaves a doubt, a fenced one none.
			if want := map[bool]string{true: "true"}[c.reply.Kind == dedup.ReplyAbsent]; flagged != want {
				t.Errorf("%s is %q, want %q", headerInDoubt, flagged, want)
			}
		})
	}
}
