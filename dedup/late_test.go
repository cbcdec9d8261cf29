package dedup

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// fullStore is a store whose writes find no room until a time.
type fullStore struct {
	Store
	until time.Time
	tries int
	err   error
}

func (s *fullStore) Apply(ctx context.Context, t Transition) (Result, error) {
	if _, end := t.(Finish); end && time.Now().Before(s.until) {
		s.tries++
		return Result{}, s.err
	}
	return s.Store.Apply(ctx, t)
}

func TestAnAnswerThatFindsNoRoomIsStoredWhenThereIsSome(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		room   time.Duration
		err    error
		stored bool
	}{
		"room within the lease":                         {10 * time.Second, NotWritten(ErrUnavailable), true},
		"no room within the lease":                      {2 * time.Minute, NotWritten(ErrUnavailable), false},
		"a write of which nobody knows is not repeated": {10 * time.Second, ErrUnavailable, false},
		"a closed store is not tried again":             {10 * time.Second, NotWritten(ErrClosed), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &fullStore{Store: NewMemory(), until: time.Now().Add(c.room), err: c.err}
				g := NewGate(s, GateOptions{})
				a := g.mustReserve(t, event("e"), Forward).Attempt
				began := time.Now()
				_, err := a.Commit(t.Context(), Answer{Status: 200})
				if (err == nil) != c.stored || time.Since(began) > policy.Lease {
					t.Fatalf("after %s and %d tries: %v", time.Since(began), s.tries, err)
				}
				if c.stored {
					g.mustLookUp(t, event("e"), Replay)
				} else if !errors.Is(err, c.err) || g.Running() != 0 {
					t.Fatalf("%v, %d running", err, g.Running())
				}
			})
		})
	}
}

func TestAnAttemptThatWasLeftMayStillConfirm(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, g *Gate) {
		a := g.mustReserve(t, event("e"), Forward).Attempt
		a.Leave()
		time.Sleep(2 * policy.Lease)
		b := g.mustReserve(t, event("e"), Forward).Attempt
		if !b.InDoubt {
			t.Fatal("the second attempt is not flagged")
		}
		if r, err := a.Confirm(t.Context(), Commit, Answer{Status: 201}); err != nil || !r.AnsweredBy(a.Number) {
			t.Fatal(r, err)
		}
		if r, err := b.Commit(t.Context(), Answer{Status: 200}); err != nil || r.Answer.Status != 201 {
			t.Fatalf("the first receipt does not stand: %+v, %v", r.Answer, err)
		}
	})
}
