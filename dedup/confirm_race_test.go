package dedup

import (
	"testing"
	"testing/synctest"
	"time"
)

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
