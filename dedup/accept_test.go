package dedup

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestAnAcceptedEventRunsUntilItsLeaseEnds(t *testing.T) {
	t.Parallel()
	inShop(t, Ask, func(t *testing.T, s *shop) {
		s.says(Reply{}, ErrUnreachable)
		a := s.attempt(t, "e")
		time.Sleep(10 * time.Second)
		a.Accept()
		if s.Running() != 0 {
			t.Fatal(s.Running(), "running")
		}
		if err := s.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		told := s.waiter(t, "e")
		time.Sleep(50*time.Second - time.Millisecond)
		synctest.Wait()
		s.mustLookUp(t, event("e"), Running)
		s.mustReserve(t, event("e"), Running)
		if v, err := s.Gate.Ask(t.Context(), event("e"), s.policy); err != nil || v.Kind != Running {
			t.Fatal(v.Kind, err)
		}
		other := event("e")
		other.Digest = Digest{66}
		s.mustReserve(t, other, Conflict)
		if len(told) != 0 || isConfirmed(a) {
			t.Fatal("over before the lease")
		}
		s.mustHaveAsked(t, time.Minute-time.Millisecond) // for the delivery
		time.Sleep(time.Millisecond)
		mustBeTold(t, told, InDoubt)
		time.Sleep(time.Second) // an app that could not be reached is left alone for that long
		s.mustHaveAsked(t, time.Minute-time.Millisecond, time.Minute+time.Second-time.Millisecond)
		if isConfirmed(a) {
			t.Fatal("the end of a lease confirms nothing")
		}
		if s.Running() != 0 {
			t.Fatal(s.Running(), "running")
		}
	})
}

func TestAnAcceptedEventIsForwardedAgainAfterItsLease(t *testing.T) {
	t.Parallel()
	inShop(t, Redeliver, func(t *testing.T, s *shop) {
		first := s.attempt(t, "e")
		first.Accept()
		time.Sleep(time.Minute)
		synctest.Wait()
		second := s.attempt(t, "e")
		if !second.InDoubt || second.Count != 2 || s.Running() != 1 {
			t.Fatalf("%#v", second)
		}
		second.Accept()
		s.mustConfirm(t, first, Commit, done)
		if !isConfirmed(second) {
			t.Fatal("not woken")
		}
		s.mustReserve(t, event("e"), Replay)
	})
}

func TestAnAcceptedEventIsHeldAfterItsLease(t *testing.T) {
	t.Parallel()
	inShop(t, HoldForPerson, func(t *testing.T, s *shop) {
		a := s.attempt(t, "e")
		a.Accept()
		told := s.waiter(t, "e")
		time.Sleep(time.Minute)
		synctest.Wait()
		s.mustBe(t, "e", StateHeld)
		if v := <-told; v.Kind != Held && v.Kind != Again && v.Kind != InDoubt && v.Kind != Aborted {
			t.Fatal(v.Kind)
		}
		if n := s.of(NoticeHeld); len(n) != 1 || n[0].Key != a.Identity.Key || n[0].Receipt.State != StateHeld {
			t.Fatalf("%+v", n)
		}
	})
}

func TestPendingRenewsTheLease(t *testing.T) {
	t.Parallel()
	inShop(t, Ask, func(t *testing.T, s *shop) {
		s.says(Reply{}, ErrUnreachable)
		a := s.attempt(t, "e")
		time.Sleep(30 * time.Second)
		if err := a.Pending(t.Context(), 5*time.Minute); err != nil {
			t.Fatal(err)
		}
		end := 30*time.Second + 5*time.Minute
		if r := s.mustBe(t, "e", StateReserved); time.Until(r.Lease) != 5*time.Minute {
			t.Fatal(time.Until(r.Lease))
		}
		told := s.waiter(t, "e")
		time.Sleep(5*time.Minute - time.Millisecond)
		s.mustLookUp(t, event("e"), Running)
		s.mustHaveAsked(t)
		time.Sleep(time.Millisecond)
		mustBeTold(t, told, InDoubt)
		s.mustHaveAsked(t, end)
	})
}

func TestPendingShortensNoLease(t *testing.T) {
	t.Parallel()
	inShop(t, Ask, func(t *testing.T, s *shop) {
		a := s.attempt(t, "e")
		if err := a.Pending(t.Context(), time.Second); err != nil {
			t.Fatal(err)
		}
		time.Sleep(59 * time.Second)
		s.mustLookUp(t, event("e"), Running)
		s.mustHaveAsked(t)
		time.Sleep(time.Second)
		s.mustHaveAsked(t, time.Minute)
	})
}

func TestALeaseThatCannotBeStoredIsNotRenewed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("disk on fire")
		store := &slowStore{Store: NewMemory()}
		s := openShop(store, Ask)
		defer s.mustClose(t)
		a := s.attempt(t, "e")
		store.before = func(Transition) error { return broken }
		if err := a.Pending(t.Context(), time.Hour); !errors.Is(err, broken) {
			t.Fatal(err)
		}
		store.before = nil
		s.mustLookUp(t, event("e"), Running)
		if s.Running() != 0 {
			t.Fatal(s.Running())
		}
		time.Sleep(time.Minute)
		s.mustHaveAsked(t, time.Minute)
	})
}

func TestAnAttemptThatIsAcceptedHasEnded(t *testing.T) {
	t.Parallel()
	inShop(t, Ask, func(t *testing.T, s *shop) {
		a := s.attempt(t, "e")
		a.Accept()
		a.Accept()
		a.Leave()
		if _, err := a.Commit(t.Context(), done); !errors.Is(err, ErrEnded) {
			t.Fatal(err)
		}
		if err := a.Pending(t.Context(), time.Hour); err != nil {
			t.Fatal(err)
		}
		s.mustLookUp(t, event("e"), Running)
		if s.Running() != 0 {
			t.Fatal(s.Running())
		}
		if r, err := a.Confirm(t.Context(), Commit, done); err != nil || !r.AnsweredBy(a.Number) {
			t.Fatal(r, err)
		}
		s.mustLookUp(t, event("e"), Replay)

		b := s.attempt(t, "f")
		b.Leave()
		b.Accept() // too late
		s.mustLookUp(t, event("f"), InDoubt)
	})
}

func TestAnAttemptConfirmedBeforeItIsAcceptedIsOver(t *testing.T) {
	t.Parallel()
	inShop(t, Ask, func(t *testing.T, s *shop) {
		a := s.attempt(t, "e")
		s.mustConfirm(t, a, Commit, done)
		if s.Running() != 1 {
			t.Fatal(s.Running(), "running")
		}
		a.Accept()
		if s.Running() != 0 {
			t.Fatal(s.Running(), "running")
		}
		s.mustReserve(t, event("e"), Replay)
		time.Sleep(time.Hour)
		s.mustHaveAsked(t)
	})
}

func TestAcceptedAfterTheLeaseIsInDoubtAtOnce(t *testing.T) {
	t.Parallel()
	inShop(t, Ask, func(t *testing.T, s *shop) {
		s.says(Reply{}, ErrUnreachable)
		a := s.attempt(t, "e")
		time.Sleep(2 * time.Minute)
		s.mustHaveAsked(t) // it runs
		a.Accept()
		s.mustHaveAsked(t, 2*time.Minute)
		s.mustLookUp(t, event("e"), InDoubt)
	})
}

func TestDrainDoesNotWaitForWhatIsAccepted(t *testing.T) {
	t.Parallel()
	inShop(t, Ask, func(t *testing.T, s *shop) {
		a, b := s.attempt(t, "a"), s.attempt(t, "b")
		drained := make(chan error, 1)
		go func() { drained <- s.Drain(t.Context()) }()
		a.Accept()
		synctest.Wait()
		if len(drained) != 0 || s.Running() != 1 {
			t.Fatal("drained with an attempt running")
		}
		b.Leave()
		if err := <-drained; err != nil {
			t.Fatal(err)
		}
		c := s.attempt(t, "c") // counts again
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.Drain(ctx); !errors.Is(err, context.DeadlineExceeded) || s.Running() != 1 {
			t.Fatal(err, s.Running())
		}
		s.mustConfirm(t, a, Commit, done)
		if s.Running() != 1 {
			t.Fatal("a confirmation of what was accepted ends another's attempt")
		}
		c.Leave()
		if s.Running() != 0 {
			t.Fatal(s.Running())
		}
	})
}

func TestCloseEndsWhatIsAccepted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := NewMemory()
		s := openShop(store, Ask)
		accepted, running := s.attempt(t, "a"), s.attempt(t, "b")
		accepted.Accept()
		waiting := make(chan error, 1)
		go func() { _, err := s.Wait(t.Context(), event("a"), s.policy); waiting <- err }()
		synctest.Wait()
		s.mustClose(t)
		if err := <-waiting; err != nil && !errors.Is(err, ErrClosed) { // it is not left alone
			t.Fatal(err)
		}
		running.Accept()
		if s.Running() != 0 {
			t.Fatal(s.Running())
		}
		s.mustHaveAsked(t)
	}) // fails if a timer or a goroutine is left
}

// The last millisecond: a callback, the lease's end and a delivery come together.
func TestTheEndOfAnAcceptedLeaseMeetsItsCallback(t *testing.T) {
	t.Parallel()
	for range 50 {
		inShop(t, Ask, func(t *testing.T, s *shop) {
			s.says(Reply{Kind: ReplyPending}, nil)
			a := s.attempt(t, "e")
			a.Accept()
			told := s.waiter(t, "e")
			go func() {
				time.Sleep(time.Minute)
				_, _ = s.Reserve(t.Context(), event("e"), s.policy)
			}()
			go func() {
				time.Sleep(time.Minute)
				if _, err := s.Confirm(t.Context(), a.Identity.Key, a.Token, Commit, done); err != nil {
					t.Error(err)
				}
			}()
			time.Sleep(time.Minute)
			synctest.Wait()
			if v := <-told; v.Kind != Replay && v.Kind != InDoubt {
				t.Fatal(v.Kind)
			}
			s.mustLookUp(t, event("e"), Replay)
			if s.Running() != 0 {
				t.Fatal(s.Running())
			}
		})
	}
}
