package dedup

import (
	"context"
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
