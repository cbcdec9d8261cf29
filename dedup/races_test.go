package dedup

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// slowStore stops in Apply or Lookup where a test says so, and fails where it says so.
type slowStore struct {
	Store
	before func(Transition) error // before the transition is applied
	after  func(Transition) error // after it is durable, before its caller knows
	looked func()                 // after a lookup has read
}

func (s *slowStore) Apply(ctx context.Context, t Transition) (Result, error) {
	if s.before != nil {
		if err := s.before(t); err != nil {
			return Result{}, err
		}
	}
	res, err := s.Store.Apply(ctx, t)
	if err == nil && s.after != nil {
		err = s.after(t)
	}
	return res, err
}

func (s *slowStore) Lookup(ctx context.Context, id Identity) (Receipt, bool, error) {
	r, found, err := s.Store.Lookup(ctx, id)
	if s.looked != nil {
		s.looked()
	}
	return r, found, err
}

func TestAReservationUnderWayIsNeitherUnknownNorInDoubt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		let := make(chan struct{})
		store := &slowStore{Store: NewMemory()}
		store.after = func(Transition) error { <-let; return nil }
		g := NewGate(store, GateOptions{})
		first := make(chan Verdict, 1)
		go func() { v, _ := g.Reserve(t.Context(), event("e"), policy); first <- v }()
		synctest.Wait()
		// Durable, but its delivery does not know yet.
		g.mustLookUp(t, event("e"), Running)
		second := make(chan Verdict, 1)
		go func() { v, _ := g.Reserve(t.Context(), event("e"), policy); second <- v }()
		synctest.Wait()
		close(let)
		a, b := <-first, <-second
		if a.Kind != Forward || b.Kind != Running {
			t.Fatal(a.Kind, b.Kind)
		}
		a.Attempt.Leave()
	})
}

func TestAReservationThatIsRefusedRefusesNobodyElse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &slowStore{Store: NewMemory()}
		g := NewGate(store, GateOptions{})
		if err := g.mustReserve(t, event("e"), Forward).Attempt.Abort(t.Context()); err != nil {
			t.Fatal(err)
		}
		let := make(chan struct{})
		store.before = func(tr Transition) error {
			if tr.Of().Digest == (Digest{66}) {
				<-let
			}
			return nil
		}
		wrong := event("e")
		wrong.Digest = Digest{66}
		bad, good := make(chan Verdict, 1), make(chan Verdict, 1)
		go func() { v, _ := g.Reserve(t.Context(), wrong, policy); bad <- v }()
		synctest.Wait()
		go func() { v, _ := g.Reserve(t.Context(), event("e"), policy); good <- v }()
		synctest.Wait()
		close(let)
		if v := <-bad; v.Kind != Conflict {
			t.Fatal(v.Kind)
		}
		v := <-good
		if v.Kind != Forward {
			t.Fatal(v.Kind)
		}
		// And while the right one runs, the wrong one is a conflict, not a waiter.
		g.mustReserve(t, wrong, Conflict)
		g.mustLookUp(t, wrong, Conflict)
		v.Attempt.Leave()
	})
}

func TestAnEndBetweenReadAndLookAroundIsSeen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &slowStore{Store: NewMemory()}
		g := NewGate(store, GateOptions{})
		a := g.mustReserve(t, event("e"), Forward).Attempt
		store.looked = func() {
			store.looked = nil
			if _, err := a.Commit(t.Context(), Answer{Status: 200}); err != nil {
				t.Error(err)
			}
		}
		g.mustLookUp(t, event("e"), Replay)
	})
}

func TestTheGuardHoldsAcrossIdsThatShareNoContent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		// e was first seen with content 1. A delivery of e with content equal in the sense of `compare json`, and one
		// of another id with content 1, meet in no id and no content; they are one event all the same.
		store := &slowStore{Store: NewMemory()}
		g := NewGate(store, GateOptions{})
		g.mustReserve(t, guarded("e", 1), Forward).Attempt.Leave()
		time.Sleep(time.Minute)
		let := make(chan struct{})
		store.after = func(Transition) error { <-let; return nil }
		same := guarded("e", 2)
		same.Fingerprint = Digest{1}
		first, second := make(chan Verdict, 1), make(chan Verdict, 1)
		go func() { v, _ := g.Reserve(t.Context(), guarded("f", 1), policy); first <- v }()
		synctest.Wait()
		go func() { v, _ := g.Reserve(t.Context(), same, policy); second <- v }()
		synctest.Wait()
		close(let)
		a, b := <-first, <-second
		if a.Kind != Forward || b.Kind != Running {
			t.Fatal(a.Kind, b.Kind)
		}
		if a.Attempt.Identity.Event != "e" || !a.Attempt.InDoubt {
			t.Fatalf("%#v", a.Attempt.Identity)
		}
		a.Attempt.Leave()
	})
}

func TestAFailedWriteLeavesTheAttemptInDoubt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("disk on fire")
		store := &slowStore{Store: NewMemory()}
		g := NewGate(store, GateOptions{})
		a := g.mustReserve(t, event("e"), Forward).Attempt
		store.before = func(Transition) error { return broken }
		waiter := make(chan Verdict, 1)
		go func() { v, _ := g.Wait(t.Context(), event("e"), policy); waiter <- v }()
		synctest.Wait()
		if _, err := a.Commit(t.Context(), Answer{Status: 200}); !errors.Is(err, broken) {
			t.Fatal(err)
		}
		if v := <-waiter; v.Kind != InDoubt {
			t.Fatal(v.Kind)
		}
		if _, err := a.Commit(t.Context(), Answer{Status: 200}); !errors.Is(err, broken) {
			t.Fatal("the second call must not succeed where the first failed:", err)
		}
		if v, err := g.Reserve(t.Context(), event("f"), policy); !errors.Is(err, broken) || v.Attempt != nil || g.Running() != 0 {
			t.Fatal(v, err)
		}
		store.before = nil
		// A reservation whose end is not known is in doubt, not forwarded.
		store.after = func(Transition) error { return broken }
		if v, err := g.Reserve(t.Context(), event("g"), policy); !errors.Is(err, broken) || v.Attempt != nil {
			t.Fatal(v, err)
		}
		store.after = nil
		g.mustLookUp(t, event("g"), InDoubt)
	})
}

func TestAnOlderAttemptMovesNothingButMayCommit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		// Two gates on one store are two processes: the first has lost sight of its lease.
		store := NewMemory()
		one, two := NewGate(store, GateOptions{}), NewGate(store, GateOptions{})
		aborting := one.mustReserve(t, event("e"), Forward).Attempt
		committing := one.mustReserve(t, event("f"), Forward).Attempt
		two.mustLookUp(t, event("e"), InDoubt)
		time.Sleep(time.Minute)
		newer := two.mustReserve(t, event("e"), Forward).Attempt
		slower := two.mustReserve(t, event("f"), Forward).Attempt
		if err := aborting.Abort(t.Context()); err != nil {
			t.Fatal(err)
		}
		two.mustLookUp(t, event("e"), Running)
		newer.Leave()
		if r, err := committing.Commit(t.Context(), Answer{Status: 201}); err != nil || !r.AnsweredBy(committing.Number) {
			t.Fatal(r, err)
		}
		r, err := slower.Commit(t.Context(), Answer{Status: 299})
		if err != nil || r.AnsweredBy(slower.Number) || r.Answer.Status != 201 {
			t.Fatal("the first receipt stands:", r, err)
		}
	})
}
