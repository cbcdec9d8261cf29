package dedup

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestAnEventIsHeldAtItsLeasesEnd(t *testing.T) {
	t.Parallel()
	inShop(t, HoldForPerson, func(t *testing.T, s *shop) {
		a := s.attempt(t, "e")
		a.Leave()
		running := s.attempt(t, "running")
		if err := s.attempt(t, "open").Abort(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute - time.Millisecond)
		synctest.Wait()
		s.mustBe(t, "e", StateReserved)
		time.Sleep(time.Millisecond)
		synctest.Wait()
		r := s.mustBe(t, "e", StateHeld)
		if n := s.of(NoticeHeld); len(n) != 1 || n[0].Key != a.Identity.Key || n[0].Receipt.State != StateHeld || !r.InDoubtBefore {
			t.Fatalf("%+v", n)
		}
		time.Sleep(time.Hour)
		s.mustBe(t, "running", StateReserved)
		s.mustBe(t, "open", StateOpen)
		running.Leave()
		synctest.Wait()
		s.mustBe(t, "running", StateHeld)
		if n := s.of(NoticeHeld); len(n) != 2 {
			t.Fatalf("%+v", n)
		}
		s.mustHaveAsked(t)
	})
}

func TestARestartHoldsNothingBeforeItsLeaseEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := NewMemory()
		NewGate(store, GateOptions{}).mustReserve(t, event("e"), Forward)
		time.Sleep(10 * time.Second)
		s := openShop(store, HoldForPerson)
		defer s.mustClose(t)
		time.Sleep(50*time.Second - time.Millisecond)
		synctest.Wait()
		s.mustBe(t, "e", StateReserved)
		time.Sleep(time.Millisecond)
		synctest.Wait()
		s.mustBe(t, "e", StateHeld)
	})
}

func TestAStoreThatCannotWriteIsTriedAgain(t *testing.T) {
	t.Parallel()
	for _, p := range []InDoubtPolicy{Ask, HoldForPerson} {
		synctest.Test(t, func(t *testing.T) {
			store := &slowStore{Store: NewMemory()}
			var broken atomic.Bool
			store.before = func(Transition) error {
				if broken.Load() {
					return NotWritten(ErrUnavailable)
				}
				return nil
			}
			s := openShop(store, p)
			defer s.mustClose(t)
			s.says(Reply{Kind: ReplyCommitted, Answer: done}, nil)
			s.attempt(t, "e").Leave()
			broken.Store(true)
			time.Sleep(2 * time.Minute)
			synctest.Wait()
			s.mustBe(t, "e", StateReserved)
			broken.Store(false)
			time.Sleep(2 * time.Minute)
			synctest.Wait()
			if r, _, _ := store.Lookup(t.Context(), event("e")); !r.State.Final() && r.State != StateHeld {
				t.Fatal(r.State)
			}
		})
	}
}

// The event's turn comes while a delivery is reserving it, and that fails: it is not forgotten.
func TestAReservationThatFailsLosesNoQuestion(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		let := make(chan struct{})
		var full atomic.Bool
		s := openShop(&slowStore{Store: NewMemory(), before: func(tr Transition) error {
			if _, ok := tr.(Reserve); !ok || !full.Load() {
				return nil
			}
			<-let
			return NotWritten(ErrUnavailable)
		}}, Ask)
		defer s.mustClose(t)
		if err := s.attempt(t, "e").Abort(t.Context()); err != nil {
			t.Fatal(err)
		}
		full.Store(true)
		failed := make(chan error, 1)
		go func() { _, err := s.Reserve(t.Context(), event("e"), s.policy); failed <- err }()
		time.Sleep(1500 * time.Millisecond)
		s.mustHaveAsked(t)
		close(let)
		if err := <-failed; !errors.Is(err, ErrUnavailable) {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(s.times()) == 0 {
			t.Fatal("never asked about again")
		}
	})
}

func TestAClockThatIsTurnedBackDoesNotSilenceDeliveries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var jump atomic.Int64
		s := &shop{app: newApp().says(Reply{Kind: ReplyPending}, nil), log: &log{}}
		s.Gate = NewGate(NewMemory(), GateOptions{Now: func() time.Time { return time.Now().Add(time.Duration(jump.Load())) }})
		defer s.mustClose(t)
		s.policy = Policy{Lease: time.Minute, InDoubt: Ask, Asker: s.app}
		s.Use(map[string]Policy{"shop": s.policy})
		s.attempt(t, "e").Leave()
		for range 2 {
			if _, err := s.Gate.Ask(t.Context(), event("e"), s.policy); err != nil {
				t.Fatal(err)
			}
			jump.Add(int64(-time.Hour))
		}
		if n := len(s.times()); n != 2 {
			t.Fatal(n, "questions of two deliveries")
		}
		jump.Store(int64(48 * time.Hour)) // and forward: everything is due
		s.says(Reply{Kind: ReplyCommitted, Answer: done}, nil)
		if v, err := s.Gate.Ask(t.Context(), event("e"), s.policy); err != nil || v.Kind != Replay {
			t.Fatal(v.Kind, err)
		}
	})
}

func TestNothingIsKeptOfWhatIsDecided(t *testing.T) {
	t.Parallel()
	inShop(t, Ask, func(t *testing.T, s *shop) {
		s.says(Reply{Kind: ReplyFenced}, nil)
		for i := range 50 {
			s.attempt(t, fmt.Sprint(i)).Leave()
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		s.resolver.mu.Lock()
		defer s.resolver.mu.Unlock()
		for _, l := range s.resolver.lanes {
			if len(l.cases) != 0 || len(l.queue) != 0 || l.running {
				t.Fatal(len(l.cases), len(l.queue), l.running)
			}
		}
	})
}

func TestAReservationOfAGuardedEventThatMayBeWrittenIsAskedAbout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &slowStore{Store: NewMemory()}
		s := openShop(store, Ask)
		defer s.mustClose(t)
		s.says(Reply{Kind: ReplyFenced}, nil)
		first := s.mustReserve(t, guarded("e", 1), Forward).Attempt
		first.Leave()
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		s.mustBe(t, "e", StateOpen)
		before := len(s.times())
		store.after = func(tr Transition) error {
			if _, ok := tr.(Reserve); ok {
				return ErrUnavailable
			}
			return nil
		}
		if _, err := s.Reserve(t.Context(), guarded("f", 1), s.policy); !errors.Is(err, ErrUnavailable) {
			t.Fatal(err)
		}
		s.mustBe(t, "e", StateReserved)
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(s.times()) == before {
			t.Fatal("never asked about: the event was tracked by the delivery's id, not by its own")
		}
	})
}

func TestADeliveryThatHoldsAnEventIsToldOf(t *testing.T) {
	t.Parallel()
	inShop(t, HoldForPerson, func(t *testing.T, s *shop) {
		s.stop() // the delivery comes before the background does
		s.attempt(t, "e").Leave()
		time.Sleep(time.Minute)
		s.mustReserve(t, event("e"), Held)
		s.mustReserve(t, event("e"), Held)
		if n := s.of(NoticeHeld); len(n) != 1 {
			t.Fatal(len(n), "notices that the event is held")
		}
	})
}
