package dedup

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestAnOwnerAsksAboutItsOwnAttempt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reply Reply
		state State
		meets Kind // a repeat, afterwards
	}{
		"committed":          {Reply{Kind: ReplyCommitted, Answer: done}, StateCommitted, Replay},
		"rejected":           {Reply{Kind: ReplyRejected, Answer: done}, StateRejected, Replay},
		"unknown":            {Reply{Kind: ReplyAbsent}, StateOpen, Again},
		"unknown and fenced": {Reply{Kind: ReplyFenced}, StateOpen, Again},
		"pending":            {Reply{Kind: ReplyPending}, StateReserved, Running},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inShop(t, Ask, func(t *testing.T, s *shop) {
				s.says(c.reply, nil)
				a := s.attempt(t, "e")
				reply, err := a.Ask(t.Context(), s.app)
				if err != nil {
					t.Fatal(err)
				}
				s.mustLookUp(t, event("e"), Running)
				r, err := a.Settle(t.Context(), reply, time.Minute)
				if err != nil || r.State != c.state || r.InDoubtBefore {
					t.Fatal(r.State, err)
				}
				if q := s.questions()[0]; q != (Question{Key: a.Identity.Key, Count: 1, Token: a.Token}) {
					t.Fatal("asked about", q.Key, q.Count)
				}
				if v := s.mustLookUp(t, event("e"), c.meets); c.meets == Replay && v.Receipt.Learned != LearnedOutcome {
					t.Fatal(v.Receipt.Learned)
				}
				if s.Running() != 0 {
					t.Fatal(s.Running())
				}
				// What is left to ask is asked: a second later while open, at the new lease's end while pending.
				time.Sleep(time.Minute)
				synctest.Wait()
				if asked := len(s.times()) > 1; asked != (c.reply.Kind == ReplyAbsent || c.reply.Kind == ReplyPending) {
					t.Fatal(s.times())
				}
			})
		})
	}
}

func TestNonsenseLeavesTheOwnersAttemptInDoubt(t *testing.T) {
	t.Parallel()
	inShop(t, Ask, func(t *testing.T, s *shop) {
		a := s.attempt(t, "e")
		if _, err := a.Settle(t.Context(), Reply{}, time.Minute); err == nil {
			t.Fatal("no reply is none")
		}
		s.mustLookUp(t, event("e"), InDoubt)
		if s.Running() != 0 {
			t.Fatal(s.Running())
		}
		if _, err := a.Settle(t.Context(), Reply{Kind: ReplyCommitted, Answer: done}, time.Minute); !errors.Is(err, ErrEnded) {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		s.mustHaveAsked(t, time.Minute)
	})
}

// While an event is open its newest attempt is asked about, and a delivery may make the next one meanwhile.
func TestAnAnswerAboutAnEarlierAttemptWakesTheLaterOne(t *testing.T) {
	t.Parallel()
	inShop(t, Ask, func(t *testing.T, s *shop) {
		let := make(chan struct{})
		s.does(func(context.Context, Question) (Reply, error) {
			<-let
			return Reply{Kind: ReplyCommitted, Answer: done}, nil
		})
		first := s.attempt(t, "e")
		if err := first.Abort(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		s.mustHaveAsked(t, time.Second)
		second := s.attempt(t, "e")
		waiter := make(chan Verdict, 1)
		go func() { v, _ := s.Wait(t.Context(), event("e"), s.policy); waiter <- v }()
		synctest.Wait()
		close(let)
		synctest.Wait()
		if !s.mustBe(t, "e", StateCommitted).AnsweredBy(first.Number) {
			t.Fatal("not the first attempt's answer")
		}
		select {
		case v := <-waiter:
			if v.Kind != Replay {
				t.Fatal(v.Kind)
			}
		default:
			t.Error("the waiter was not woken")
		}
		select {
		case <-second.Confirmed():
		default:
			t.Error("the attempt's owner was not woken")
		}
		second.Leave()
	})
}

func TestOtherAnswersAboutAnEarlierAttemptLeaveTheLaterOneAlone(t *testing.T) {
	t.Parallel()
	for _, kind := range []ReplyKind{ReplyAbsent, ReplyFenced, ReplyPending} {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			inShop(t, Ask, func(t *testing.T, s *shop) {
				let := make(chan struct{})
				s.does(func(context.Context, Question) (Reply, error) { <-let; return Reply{Kind: kind}, nil })
				first := s.attempt(t, "e")
				if err := first.Abort(t.Context()); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				synctest.Wait()
				second := s.attempt(t, "e")
				lease := s.mustBe(t, "e", StateReserved).Lease
				close(let)
				synctest.Wait()
				r := s.mustBe(t, "e", StateReserved)
				if !r.Lease.Equal(lease) || (r.Closed == first.Number) != (kind == ReplyFenced) {
					t.Fatalf("%+v", r)
				}
				s.mustLookUp(t, event("e"), Running)
				select {
				case <-second.Confirmed():
					t.Fatal("nothing was decided")
				default:
				}
				if _, err := second.Commit(t.Context(), done); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

func TestAReceiptOfAnotherSeedIsAskedForWithoutAToken(t *testing.T) {
	t.Parallel()
	g := NewGate(NewMemory(), GateOptions{})
	r, _, _, err := Step(Reserve{Identity: event("e"), At: noon, Lease: time.Minute, Seed: Seed{1}}, Receipt{}, false)
	if err != nil {
		t.Fatal(err)
	}
	if q := g.question(r); q.Token != "" || q.Key != r.Key || q.Count != 1 {
		t.Fatal("asked with a token that is not the attempt's")
	}
}
