package dedup

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// confirm is the app's callback about an attempt.
func (s *shop) confirm(t *testing.T, a *Attempt, o Outcome, answer Answer) (Receipt, error) {
	t.Helper()
	return s.Confirm(t.Context(), a.Identity.Key, a.Token, o, answer)
}

func (s *shop) mustConfirm(t *testing.T, a *Attempt, o Outcome, answer Answer) Receipt {
	t.Helper()
	r, err := s.confirm(t, a, o, answer)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// isConfirmed tells whether an attempt's owner is told of a callback now.
func isConfirmed(a *Attempt) bool {
	synctest.Wait()
	select {
	case <-a.Confirmed():
		return true
	default:
		return false
	}
}

// waiter waits for an event as a repeat does.
func (s *shop) waiter(t *testing.T, id string) <-chan Verdict {
	t.Helper()
	told := make(chan Verdict, 1)
	go func() {
		if v, err := s.Wait(t.Context(), event(id), s.policy); err == nil {
			told <- v
		}
	}()
	synctest.Wait()
	if len(told) != 0 {
		t.Fatal("told at once", (<-told).Kind)
	}
	return told
}

// mustBeTold is what a waiter is told now, not later.
func mustBeTold(t *testing.T, told <-chan Verdict, want Kind) {
	t.Helper()
	synctest.Wait()
	select {
	case v := <-told:
		if v.Kind != want {
			t.Fatal("told", v.Kind)
		}
	default:
		t.Fatal("the waiter was not woken")
	}
}

// mustNotice counts the notices of two kinds.
func (s *shop) mustNotice(t *testing.T, differs, closed int) {
	t.Helper()
	if d, c := len(s.of(NoticeReceiptDiffers)), len(s.of(NoticeAttemptClosed)); d != differs || c != closed {
		t.Fatalf("%d of receipts that differ and %d of closed attempts; want %d and %d", d, c, differs, closed)
	}
}

func TestEveryAttemptNotClosedMayConfirmAtAnyTime(t *testing.T) {
	t.Parallel()
	left := func(t *testing.T, s *shop) *Attempt {
		a := s.attempt(t, "e")
		a.Leave()
		return a
	}
	for name, moment := range map[string]struct {
		policy InDoubtPolicy
		before func(*testing.T, *shop) *Attempt // returns the attempt that confirms then
	}{
		"before the app's answer": {Ask, func(t *testing.T, s *shop) *Attempt { return s.attempt(t, "e") }},
		"after it": {Ask, func(t *testing.T, s *shop) *Attempt {
			a := s.attempt(t, "e")
			a.Accept()
			return a
		}},
		"after it, with a longer lease": {Ask, func(t *testing.T, s *shop) *Attempt {
			a := s.attempt(t, "e")
			if err := a.Pending(t.Context(), time.Hour); err != nil {
				t.Fatal(err)
			}
			time.Sleep(30 * time.Minute)
			return a
		}},
		"after the sender was answered": {Ask, left},
		"after it was said to be aborted": {Ask, func(t *testing.T, s *shop) *Attempt {
			a := s.attempt(t, "e")
			if err := a.Abort(t.Context()); err != nil {
				t.Fatal(err)
			}
			return a
		}},
		"after the lease": {Redeliver, func(t *testing.T, s *shop) *Attempt {
			a := left(t, s)
			time.Sleep(time.Hour)
			return a
		}},
		"after the app knew nothing of it": {Ask, func(t *testing.T, s *shop) *Attempt {
			a := left(t, s)
			time.Sleep(time.Hour)
			s.mustBe(t, "e", StateOpen)
			return a
		}},
		"while a later attempt runs": {Redeliver, func(t *testing.T, s *shop) *Attempt {
			a := left(t, s)
			time.Sleep(time.Hour)
			s.attempt(t, "e")
			return a
		}},
		"while a person is to decide": {HoldForPerson, func(t *testing.T, s *shop) *Attempt {
			a := left(t, s)
			time.Sleep(time.Minute)
			synctest.Wait()
			s.mustBe(t, "e", StateHeld)
			return a
		}},
	} {
		for outcome, state := range map[Outcome]State{Commit: StateCommitted, Reject: StateRejected} {
			t.Run(outcome.String()+" "+name, func(t *testing.T) {
				t.Parallel()
				inShop(t, moment.policy, func(t *testing.T, s *shop) {
					a := moment.before(t, s)
					r := s.mustConfirm(t, a, outcome, done)
					if r.State != state || !r.AnsweredBy(a.Number) || r.Learned != LearnedCallback || !r.Answer.Equal(done) {
						t.Fatalf("%+v", r)
					}
					if v := s.mustLookUp(t, event("e"), Replay); !v.Receipt.Answer.Equal(done) {
						t.Fatalf("%+v", v)
					}
					again := s.mustConfirm(t, a, outcome, done)
					if !again.Updated.Equal(r.Updated) {
						t.Fatal("the same word twice was written twice")
					}
					asked := len(s.times())
					time.Sleep(2 * time.Hour)
					synctest.Wait()
					if len(s.times()) != asked {
						t.Fatal("asked after the end")
					}
					s.mustNotice(t, 0, 0)
				})
			})
		}
	}
}

func TestACallbackWakesWhoeverWaits(t *testing.T) {
	t.Parallel()
	for outcome, kind := range map[Outcome]Kind{Commit: Replay, Reject: Replay, Abort: Aborted} {
		for name, c := range map[string]func(*Attempt){
			"while the attempt runs": func(*Attempt) {},
			"once it is accepted":    (*Attempt).Accept,
		} {
			t.Run(outcome.String()+" "+name, func(t *testing.T) {
				t.Parallel()
				inShop(t, Ask, func(t *testing.T, s *shop) {
					a := s.attempt(t, "e")
					c(a)
					one, two := s.waiter(t, "e"), s.waiter(t, "e")
					if isConfirmed(a) {
						t.Fatal("told before")
					}
					began := time.Now()
					s.mustConfirm(t, a, outcome, done)
					mustBeTold(t, one, kind)
					mustBeTold(t, two, kind)
					if !isConfirmed(a) || time.Since(began) != 0 {
						t.Fatal("the attempt's owner was not told at once")
					}
					if r, err := a.Stands(t.Context()); err != nil || r.State != map[Outcome]State{Commit: StateCommitted, Reject: StateRejected, Abort: StateOpen}[outcome] {
						t.Fatal(r.State, err)
					}
					a.Leave()
					if s.Running() != 0 {
						t.Fatal(s.Running())
					}
				})
			})
		}
	}
}

// The attempt that runs is not the one that speaks; its waiters and its owner wait for the event.
func TestACallbackOfAnEarlierAttemptWakesTheLaterOne(t *testing.T) {
	t.Parallel()
	inShop(t, Redeliver, func(t *testing.T, s *shop) {
		first := s.attempt(t, "e")
		first.Leave()
		time.Sleep(time.Minute)
		second := s.attempt(t, "e")
		told := s.waiter(t, "e")
		s.mustConfirm(t, first, Abort, Answer{}) // says nothing of the second
		synctest.Wait()
		if len(told) != 0 || isConfirmed(second) {
			t.Fatal("woken by what the first attempt did not do")
		}
		s.mustLookUp(t, event("e"), Running)
		s.mustConfirm(t, first, Commit, done)
		mustBeTold(t, told, Replay)
		if !isConfirmed(second) {
			t.Fatal("the second attempt's owner was not told")
		}
		second.Leave()
		s.mustNotice(t, 0, 0)
	})
}

func TestTheOwnersEndAfterACallbackReturnsWhatStands(t *testing.T) {
	t.Parallel()
	inShop(t, Ask, func(t *testing.T, s *shop) {
		a := s.attempt(t, "e")
		s.mustConfirm(t, a, Commit, done)
		r, err := a.Commit(t.Context(), Answer{Status: 204})
		if err != nil || !r.Answer.Equal(done) || r.Learned != LearnedCallback {
			t.Fatalf("%+v, %v", r, err)
		}
		s.mustNotice(t, 0, 0) // one attempt's answer, said in two ways, is one effect
		b := s.attempt(t, "f")
		s.mustConfirm(t, b, Reject, done)
		if err := b.Abort(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.mustBe(t, "f", StateRejected)
		s.mustNotice(t, 0, 0)
	})
}

// A delivery that looked before the callback and reserves after it finds an attempt that is decided and not over. It
// must not wait for that, and not spin.
func TestAReservationMeetsAnAttemptThatIsConfirmedAndRuns(t *testing.T) {
	t.Parallel()
	inShop(t, Ask, func(t *testing.T, s *shop) {
		a := s.attempt(t, "e")
		s.mustConfirm(t, a, Commit, done)
		s.mustReserve(t, event("e"), Replay)
		other := event("e")
		other.Digest = Digest{66}
		s.mustReserve(t, other, Conflict)
		if s.Running() != 1 {
			t.Fatal(s.Running())
		}
		a.Leave()
		if s.Running() != 0 {
			t.Fatal(s.Running())
		}
	})
}

// Two attempts run: the first has said aborted by a callback and answers all the same.
func TestTheEndOfAnAbortedAttemptWakesTheLaterOne(t *testing.T) {
	t.Parallel()
	inShop(t, Ask, func(t *testing.T, s *shop) {
		first := s.attempt(t, "e")
		s.mustConfirm(t, first, Abort, Answer{})
		second := s.attempt(t, "e")
		told := s.waiter(t, "e")
		if r, err := first.Commit(t.Context(), done); err != nil || !r.AnsweredBy(first.Number) {
			t.Fatal(r, err)
		}
		if synctest.Wait(); len(told) != 1 {
			t.Error("the waiter was not woken")
		}
		if !isConfirmed(second) {
			t.Error("the second attempt's owner was not told")
		}
		second.Leave()
	})
}

// What was aborted by a callback is asked about, however and whenever its attempt ends.
func TestAnAttemptThatACallbackAbortedIsAskedAbout(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*Attempt){
		"left":     (*Attempt).Leave,
		"accepted": (*Attempt).Accept,
		"aborted":  func(a *Attempt) { _ = a.Abort(context.Background()) },
		"pending":  func(a *Attempt) { _ = a.Pending(context.Background(), time.Minute) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inShop(t, Ask, func(t *testing.T, s *shop) {
				a := s.attempt(t, "e")
				s.mustConfirm(t, a, Abort, Answer{})
				time.Sleep(5 * time.Second)
				s.mustHaveAsked(t, time.Second, 2*time.Second, 4*time.Second)
				end(a)
				s.says(Reply{Kind: ReplyCommitted, Answer: done}, nil)
				time.Sleep(2 * time.Minute)
				s.mustBe(t, "e", StateCommitted)
			})
		})
	}
}

func TestACarelessAbortIsAskedAbout(t *testing.T) {
	t.Parallel()
	inShop(t, Ask, func(t *testing.T, s *shop) {
		a := s.attempt(t, "e")
		a.Accept()
		s.mustConfirm(t, a, Abort, Answer{})
		if s.mustLookUp(t, event("e"), Again).Receipt.State != StateOpen {
			t.Fatal("not free")
		}
		s.says(Reply{Kind: ReplyCommitted, Answer: done}, nil)
		time.Sleep(time.Second)
		s.mustHaveAsked(t, time.Second)
		s.mustBe(t, "e", StateCommitted)
	})
}

func TestTwoReceiptsAreToldOf(t *testing.T) {
	t.Parallel()
	other := Answer{Status: 201, Header: done.Header, Body: []byte("done again")}
	for name, c := range map[string]struct {
		stands, says Outcome
		answer       Answer
		differs      int
	}{
		"the same":                 {Commit, Commit, done, 0},
		"another answer":           {Commit, Commit, other, 1},
		"rejected, then committed": {Reject, Commit, done, 1},
		"committed, then rejected": {Commit, Reject, done, 1},
		"committed, then aborted":  {Commit, Abort, Answer{}, 0},
		"rejected twice":           {Reject, Reject, done, 0},
	} {
		for by, say := range map[string]func(*testing.T, *shop, *Attempt) error{
			"callback": func(t *testing.T, s *shop, a *Attempt) error {
				_, err := s.confirm(t, a, c.says, c.answer)
				return err
			},
			"its owner": func(t *testing.T, _ *shop, a *Attempt) (err error) {
				switch c.says {
				case Commit:
					_, err = a.Commit(t.Context(), c.answer)
				case Reject:
					_, err = a.Reject(t.Context(), c.answer)
				default:
					err = a.Abort(t.Context())
				}
				return err
			},
			"its owner, late": func(t *testing.T, _ *shop, a *Attempt) error {
				a.Leave()
				if c.says == Abort {
					return nil // is no news any more
				}
				_, err := a.Confirm(t.Context(), c.says, c.answer)
				return err
			},
		} {
			t.Run(name+" by "+by, func(t *testing.T) {
				t.Parallel()
				inShop(t, Redeliver, func(t *testing.T, s *shop) {
					first := s.attempt(t, "e")
					first.Leave()
					time.Sleep(time.Minute)
					second := s.attempt(t, "e")
					s.mustConfirm(t, first, c.stands, done)
					err := say(t, s, second)
					if by == "callback" && errors.Is(err, ErrReceiptDiffers) != (c.differs == 1) || by != "callback" && err != nil {
						t.Fatal(err)
					}
					s.mustNotice(t, c.differs, 0)
					for _, n := range s.of(NoticeReceiptDiffers) {
						if n.Key != first.Identity.Key || n.Attempt != second.Number || !n.Receipt.AnsweredBy(first.Number) || !errors.Is(n.Err, ErrReceiptDiffers) {
							t.Fatalf("%+v", n)
						}
					}
					if r := s.mustBe(t, "e", map[Outcome]State{Commit: StateCommitted, Reject: StateRejected}[c.stands]); !r.Answer.Equal(done) {
						t.Fatal("the first receipt does not stand")
					}
					second.Leave()
				})
			})
		}
	}
}

func TestAClosedAttemptThatCommitsIsToldOf(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		say     func(*testing.T, *shop, *Attempt) error
		err     error
		notices int
	}{
		"by callback": {func(t *testing.T, s *shop, a *Attempt) error {
			_, err := s.confirm(t, a, Commit, done)
			return err
		}, ErrAttemptClosed, 1},
		"by its owner, late": {func(t *testing.T, _ *shop, a *Attempt) error {
			_, err := a.Confirm(t.Context(), Commit, done)
			return err
		}, ErrAttemptClosed, 1},
		"it aborts": {func(t *testing.T, s *shop, a *Attempt) error {
			_, err := s.confirm(t, a, Abort, Answer{})
			return err
		}, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inShop(t, Ask, func(t *testing.T, s *shop) {
				s.says(Reply{Kind: ReplyFenced}, nil)
				a := s.attempt(t, "e")
				a.Leave()
				time.Sleep(time.Hour)
				if r := s.mustBe(t, "e", StateOpen); r.Closed != a.Number {
					t.Fatalf("%+v", r)
				}
				if err := c.say(t, s, a); !errors.Is(err, c.err) {
					t.Fatal(err)
				}
				s.mustNotice(t, 0, c.notices)
				for _, n := range s.of(NoticeAttemptClosed) {
					if n.Key != a.Identity.Key || n.Attempt != a.Number || n.Receipt.State != StateOpen {
						t.Fatalf("%+v", n)
					}
				}
				s.mustBe(t, "e", StateOpen)
			})
		})
	}
}

func TestAWrongTokenMovesNothingAndTellsNothing(t *testing.T) {
	t.Parallel()
	inShop(t, Ask, func(t *testing.T, s *shop) {
		a, b := s.attempt(t, "a"), s.attempt(t, "b")
		for token, want := range map[string]error{b.Token: ErrUnknownAttempt, "": ErrUnknownAttempt, a.Token + "0": ErrUnknownAttempt} {
			if _, err := s.Confirm(t.Context(), a.Identity.Key, token, Commit, done); !errors.Is(err, want) {
				t.Fatal(err)
			}
			if known, err := s.Knows(t.Context(), a.Identity.Key, token); known || err != nil {
				t.Fatal(known, err)
			}
		}
		if known, err := s.Knows(t.Context(), a.Identity.Key, a.Token); !known || err != nil {
			t.Fatal(known, err)
		}
		if known, err := s.Knows(t.Context(), Key{"shop", "never seen"}, a.Token); known || err != nil {
			t.Fatal(known, err)
		}
		if _, err := s.Confirm(t.Context(), Key{"shop", "never seen"}, a.Token, Commit, done); !errors.Is(err, ErrUnknownEvent) {
			t.Fatal(err)
		}
		if isConfirmed(a) || isConfirmed(b) {
			t.Fatal("woken by a wrong token")
		}
		s.mustLookUp(t, event("a"), Running)
		s.mustNotice(t, 0, 0)
		a.Leave()
		b.Leave()
	})
}

// raceShop is a shop whose store runs something right after a transition of some kind is durable, once, before the
// caller knows.
func raceShop(p InDoubtPolicy, after func(Transition) bool, then func()) *shop {
	store := &slowStore{Store: NewMemory()}
	store.after = func(t Transition) error {
		if after(t) {
			after = func(Transition) bool { return false }
			then()
		}
		return nil
	}
	return openShop(store, p)
}

// Between an abort that is durable and its waking, the event's next attempt begins: it was not decided by that.
func TestAnAbortDoesNotWakeTheAttemptThatFollows(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s *shop
		var next *Attempt
		s = raceShop(Redeliver, func(tr Transition) bool { _, ok := tr.(Confirm); return ok },
			func() { next = s.attempt(t, "e") })
		defer s.mustClose(t)
		first := s.attempt(t, "e")
		first.Leave()
		s.mustConfirm(t, first, Abort, Answer{})
		if isConfirmed(next) {
			t.Error("the second attempt counts as confirmed: what its app answers is thrown away, and it runs unseen")
		}
		next.Leave()
	})
}

// An earlier attempt confirms after the next reservation is durable, before its delivery knows.
func TestACallbackDuringTheNextReservationWakesItsAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s *shop
		var first *Attempt
		s = raceShop(Redeliver, func(tr Transition) bool { _, ok := tr.(Reserve); return ok && first != nil },
			func() { s.mustConfirm(t, first, Commit, done) })
		defer s.mustClose(t)
		first = s.attempt(t, "e")
		first.Leave()
		time.Sleep(time.Minute)
		second := s.attempt(t, "e")
		s.mustBe(t, "e", StateCommitted)
		if !isConfirmed(second) {
			t.Error("the second attempt's owner is not told that the event is committed")
		}
		second.Leave()
	})
}

// A repeat that waits for a reservation under way is woken by a callback in it, too.
func TestACallbackDuringTheNextReservationWakesItsWaiters(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s *shop
		var first *Attempt
		var told <-chan Verdict
		s = raceShop(Redeliver, func(tr Transition) bool { _, ok := tr.(Reserve); return ok && first != nil },
			func() {
				told = s.waiter(t, "e")
				s.mustConfirm(t, first, Commit, done)
			})
		defer s.mustClose(t)
		first = s.attempt(t, "e")
		first.Leave()
		time.Sleep(time.Minute)
		second := s.attempt(t, "e")
		synctest.Wait()
		if len(told) != 1 {
			t.Error("the waiter was not woken")
		}
		second.Leave()
	})
}

func TestAClosedAttemptsCommitIsToldOfWhenTheEventIsFinal(t *testing.T) {
	t.Parallel()
	inShop(t, Ask, func(t *testing.T, s *shop) {
		s.says(Reply{Kind: ReplyFenced}, nil)
		first := s.attempt(t, "e")
		first.Leave()
		time.Sleep(time.Hour)
		if _, err := s.attempt(t, "e").Commit(t.Context(), done); err != nil {
			t.Fatal(err)
		}
		// The same answer as the second attempt's, but of an attempt that the app had refused for good.
		if _, err := first.Confirm(t.Context(), Commit, done); err != nil && !errors.Is(err, ErrAttemptClosed) {
			t.Fatal(err)
		}
		s.mustNotice(t, 0, 1)
	})
}

func TestAClosedAttemptThatRejectsProvesNoEffect(t *testing.T) {
	t.Parallel()
	inShop(t, Ask, func(t *testing.T, s *shop) {
		s.says(Reply{Kind: ReplyFenced}, nil)
		a := s.attempt(t, "e")
		a.Leave()
		time.Sleep(time.Hour)
		if _, err := s.confirm(t, a, Reject, done); !errors.Is(err, ErrAttemptClosed) {
			t.Fatal(err)
		}
		s.mustNotice(t, 0, 0)
	})
}

func TestTheAnswerToAQuestionIsHeldAgainstTheReceipt(t *testing.T) {
	t.Parallel()
	inShop(t, Ask, func(t *testing.T, s *shop) {
		let := make(chan struct{})
		s.does(func(context.Context, Question) (Reply, error) {
			<-let
			return Reply{Kind: ReplyCommitted, Answer: done}, nil
		})
		if err := s.attempt(t, "e").Abort(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if _, err := s.attempt(t, "e").Commit(t.Context(), Answer{Status: 299}); err != nil {
			t.Fatal(err)
		}
		close(let)
		synctest.Wait()
		s.mustNotice(t, 1, 0)
	})
}
