package dedup

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestWhatTheAppSaysMovesTheEvent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reply    Reply
		err      error
		state    State
		closed   bool // for good
		resolved bool // a notice says so
		asks     bool // goes on asking
	}{
		"committed":               {Reply{Kind: ReplyCommitted, Answer: done}, nil, StateCommitted, false, true, false},
		"rejected":                {Reply{Kind: ReplyRejected, Answer: done}, nil, StateRejected, false, true, false},
		"unknown":                 {Reply{Kind: ReplyAbsent}, nil, StateOpen, false, true, true},
		"unknown and fenced":      {Reply{Kind: ReplyFenced}, nil, StateOpen, true, true, false},
		"pending":                 {Reply{Kind: ReplyPending}, nil, StateReserved, false, false, true},
		"unreachable":             {Reply{}, ErrUnreachable, StateReserved, false, false, true},
		"nonsense":                {Reply{}, errors.New("<html>"), StateReserved, false, false, true},
		"no reply and no error":   {Reply{}, nil, StateReserved, false, false, true},
		"a reply there is not":    {Reply{Kind: replyEnd, Answer: done}, nil, StateReserved, false, false, true},
		"an answer with an error": {Reply{Kind: ReplyCommitted, Answer: done}, errors.New("cut off"), StateReserved, false, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inShop(t, Ask, func(t *testing.T, s *shop) {
				s.says(c.reply, c.err)
				a := s.attempt(t, "e")
				a.Leave()
				time.Sleep(time.Minute)
				s.mustHaveAsked(t, time.Minute)
				if q := s.questions()[0]; q != (Question{Key: a.Identity.Key, Count: 1, Token: a.Token}) {
					t.Fatal("asked about", q.Key, q.Count)
				}
				r := s.mustBe(t, "e", c.state)
				if (r.Closed == a.Number) != c.closed || r.State.Final() && (!r.AnsweredBy(a.Number) || !r.Answer.Equal(done) || r.Learned != LearnedOutcome) {
					t.Fatalf("%+v", r)
				}
				if doubt := c.reply.Kind == ReplyAbsent; r.InDoubtBefore != doubt {
					t.Fatal("flagged in doubt:", r.InDoubtBefore)
				}
				if n := s.of(NoticeResolved); (len(n) == 1) != c.resolved || len(n) > 0 && (n[0].Attempt != a.Number || n[0].Receipt.State != c.state) {
					t.Fatalf("%+v", n)
				}
				if n := len(s.of(NoticeUnanswered)); (n == 1) != (!c.resolved && c.reply.Kind != ReplyPending || c.err != nil) {
					t.Fatal(n, "notices of no answer")
				}
				if c.reply.Kind == ReplyPending && c.err == nil {
					if !r.Lease.Equal(time.Now().Add(time.Minute)) {
						t.Fatal("the lease ends", time.Until(r.Lease), "from now")
					}
				}
				time.Sleep(time.Hour)
				synctest.Wait()
				if more := len(s.times()) > 1; more != c.asks {
					t.Fatalf("asked at %v", s.times())
				}
				s.mustBe(t, "e", c.state)
			})
		})
	}
}

func TestADeliveryAsks(t *testing.T) {
	t.Parallel()
	inShop(t, Ask, func(t *testing.T, s *shop) {
		ask := func(want Kind) {
			t.Helper()
			if v, err := s.Gate.Ask(t.Context(), event("e"), s.policy); err != nil || v.Kind != want {
				t.Fatalf("got %v, %v, want %v", v.Kind, err, want)
			}
		}
		ask(First)
		a := s.attempt(t, "e")
		ask(Running)
		s.says(Reply{}, ErrUnreachable)
		a.Leave()
		s.mustHaveAsked(t)
		ask(InDoubt) // long before the lease is over
		s.mustHaveAsked(t, 0)
		ask(InDoubt) // again within the second: not asked again
		time.Sleep(999 * time.Millisecond)
		ask(InDoubt)
		if n := len(s.times()); n != 1 {
			t.Fatal(n, "questions in one second")
		}
		s.says(Reply{Kind: ReplyCommitted, Answer: done}, nil)
		time.Sleep(time.Millisecond)
		ask(Replay)
		ask(Replay)
		if n := len(s.times()); n > 2 {
			t.Fatal(s.times())
		}
	})
}

func TestADeliveryAsksOnlyWhereThePolicySaysSo(t *testing.T) {
	t.Parallel()
	inShop(t, Redeliver, func(t *testing.T, s *shop) {
		s.attempt(t, "e").Leave()
		for _, p := range []Policy{s.policy, policy, {Lease: time.Minute, InDoubt: HoldForPerson, Asker: s.app}, {Lease: time.Minute, InDoubt: Ask}} {
			if v, err := s.Gate.Ask(t.Context(), event("e"), p); err != nil || v.Kind != InDoubt {
				t.Fatal(v.Kind, err)
			}
		}
		other := event("e")
		other.Digest = Digest{66}
		asks := Policy{Lease: time.Minute, InDoubt: Ask, Asker: s.app}
		if v, err := s.Gate.Ask(t.Context(), other, asks); err != nil || v.Kind != Conflict {
			t.Fatal(v.Kind, err)
		}
		s.mustHaveAsked(t)
		s.attempt(t, "open").Leave()
		if v, err := s.Gate.Ask(t.Context(), event("open"), asks); err != nil || v.Kind != Again {
			t.Fatal(v.Kind, err)
		}
		if v, err := s.Gate.Ask(t.Context(), event("open"), asks); err != nil || v.Kind != Again {
			t.Fatal(v.Kind, err)
		}
		s.mustHaveAsked(t, 0) // an open event is the next delivery's: there is nothing to wait for
	})
}

func TestOfManyDeliveriesOneAsks(t *testing.T) {
	t.Parallel()
	inShop(t, Ask, func(t *testing.T, s *shop) {
		let := make(chan struct{})
		s.does(func(context.Context, Question) (Reply, error) {
			<-let
			return Reply{Kind: ReplyCommitted, Answer: done}, nil
		})
		s.attempt(t, "e").Leave()
		const many = 32
		verdicts := make(chan Kind, many)
		for range many {
			go func() {
				v, err := s.Gate.Ask(t.Context(), event("e"), s.policy)
				if err != nil {
					t.Error(err)
				}
				verdicts <- v.Kind
			}()
		}
		synctest.Wait()
		time.Sleep(time.Minute) // the end of the lease meets a question under way
		synctest.Wait()
		if n := len(s.times()); n != 1 || len(verdicts) != 0 {
			t.Fatalf("%d questions, %d verdicts", n, len(verdicts))
		}
		close(let)
		for range many {
			if kind := <-verdicts; kind != Replay {
				t.Fatal(kind)
			}
		}
		time.Sleep(time.Hour)
		s.mustHaveAsked(t, 0)
	})
}

func TestADeliveryThatIsGivenUpWaitsNoLonger(t *testing.T) {
	t.Parallel()
	inShop(t, Ask, func(t *testing.T, s *shop) {
		let := make(chan struct{})
		s.does(func(context.Context, Question) (Reply, error) { <-let; return Reply{Kind: ReplyPending}, nil })
		s.attempt(t, "e").Leave()
		time.Sleep(time.Minute)
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		began := time.Now()
		if v, err := s.Gate.Ask(ctx, event("e"), s.policy); err != nil || v.Kind != InDoubt || time.Since(began) != 3*time.Second {
			t.Fatal(v.Kind, err, time.Since(began))
		}
		s.mustHaveAsked(t, time.Minute)
		close(let)
	})
}

// A sender that hangs up says nothing of the app: the other events' questions do not wait for it.
func TestASenderThatHangsUpIsNotAnAppThatCannotBeReached(t *testing.T) {
	t.Parallel()
	inShop(t, Ask, func(t *testing.T, s *shop) {
		s.does(func(ctx context.Context, q Question) (Reply, error) {
			if q.Key.Event != "e" {
				return Reply{Kind: ReplyCommitted, Answer: done}, nil
			}
			<-ctx.Done()
			return Reply{}, errors.Join(ErrUnreachable, ctx.Err())
		})
		s.attempt(t, "other").Leave()
		time.Sleep(59 * time.Second)
		s.attempt(t, "e").Leave()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if v, err := s.Gate.Ask(ctx, event("e"), s.policy); err != nil || v.Kind != InDoubt {
			t.Fatal(v.Kind, err)
		}
		s.mustHaveAsked(t, 59*time.Second, time.Minute)
		s.mustBe(t, "other", StateCommitted)
		if n := s.of(NoticeUnanswered); len(n) != 0 {
			t.Fatal(n[0].Err)
		}
	})
}
