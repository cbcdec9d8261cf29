package dedup

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestTheNewestConfigurationAsks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reload func(s *shop, next map[string]Policy)
		old    int // questions to the old app, and to the new one, by the end of the lease
		next   int
	}{
		"the new one is used before the old one is stopped": {func(s *shop, next map[string]Policy) {
			s.Use(next)
			s.stop()
		}, 0, 1},
		"the old one has not stopped yet": {func(s *shop, next map[string]Policy) { s.Use(next) }, 0, 1},
		"a load that failed":              {func(s *shop, next map[string]Policy) { s.Use(next)() }, 1, 0},
		"a load that failed twice": {func(s *shop, next map[string]Policy) {
			a, b := s.Use(next), s.Use(map[string]Policy{})
			a()
			b()
		}, 1, 0},
		"stopped twice": {func(s *shop, next map[string]Policy) {
			s.Use(next)
			s.stop()
			s.stop()
		}, 0, 1},
		"all are stopped": {func(s *shop, next map[string]Policy) {
			stop := s.Use(next)
			s.stop()
			stop()
		}, 0, 0},
		"a source that is gone": {func(s *shop, _ map[string]Policy) { s.Use(map[string]Policy{"mill": s.policy}) }, 0, 0},
		"a source that does not ask any more": {func(s *shop, _ map[string]Policy) {
			s.Use(map[string]Policy{"shop": policy})
		}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inShop(t, Ask, func(t *testing.T, s *shop) {
				next := newApp().says(Reply{Kind: ReplyCommitted, Answer: done}, nil)
				s.says(Reply{Kind: ReplyCommitted, Answer: done}, nil)
				s.attempt(t, "e").Leave()
				time.Sleep(30 * time.Second)
				c.reload(s, map[string]Policy{"shop": {Lease: time.Minute, InDoubt: Ask, Asker: next}})
				time.Sleep(time.Hour)
				synctest.Wait()
				if o, n := len(s.times()), len(next.times()); o != c.old || n != c.next {
					t.Fatalf("%d questions to the old app, %d to the new one", o, n)
				}
				if c.old+c.next > 0 && (append(s.times(), next.times()...))[0] != time.Minute {
					t.Fatal(s.times(), next.times())
				}
			})
		})
	}
}

func TestASourceThatComesBackIsAskedAtOnce(t *testing.T) {
	t.Parallel()
	for _, before := range []bool{true, false} { // its event was known before it went, or came meanwhile
		inShop(t, Ask, func(t *testing.T, s *shop) {
			if before {
				s.attempt(t, "e").Leave()
			}
			gone := s.Use(map[string]Policy{})
			if !before {
				s.attempt(t, "e").Leave()
			}
			time.Sleep(time.Hour)
			s.mustHaveAsked(t)
			gone()
			s.mustHaveAsked(t, time.Hour)
		})
	}
}

func TestAReloadDuringAQuestion(t *testing.T) {
	t.Parallel()
	inShop(t, Ask, func(t *testing.T, s *shop) {
		let := make(chan struct{})
		s.does(func(context.Context, Question) (Reply, error) { <-let; return Reply{Kind: ReplyAbsent}, nil })
		s.attempt(t, "e").Leave()
		time.Sleep(time.Minute)
		synctest.Wait()
		next := newApp()
		defer s.Use(map[string]Policy{"shop": {Lease: time.Minute, InDoubt: Ask, Asker: next}})()
		s.stop()
		synctest.Wait()
		if len(next.times()) != 0 {
			t.Fatal("asked twice at a time")
		}
		close(let)
		synctest.Wait()
		s.mustBe(t, "e", StateOpen) // what the old app said counts
		time.Sleep(s1)
		synctest.Wait()
		if !slices.Equal(next.times(), []time.Duration{s1}) || len(s.times()) != 1 {
			t.Fatal(next.times(), s.times())
		}
	})
}

func TestAChangedPolicyIsFollowed(t *testing.T) {
	t.Parallel()
	inShop(t, Ask, func(t *testing.T, s *shop) {
		s.says(Reply{}, ErrUnreachable)
		s.attempt(t, "e").Leave()
		time.Sleep(70 * time.Second)
		defer s.Use(map[string]Policy{"shop": {Lease: time.Minute, InDoubt: HoldForPerson}})()
		time.Sleep(longestGap)
		synctest.Wait()
		s.mustBe(t, "e", StateHeld)
		if len(s.of(NoticeHeld)) != 1 {
			t.Fatal("nobody was told")
		}
	})
}

// unreadable is a store whose undecided events cannot be read for some times.
type unreadable struct {
	*Memory
	fails, scans atomic.Int64
}

func (s *unreadable) Undecided(ctx context.Context) iter.Seq2[Receipt, error] {
	s.scans.Add(1)
	if s.fails.Add(-1) < 0 {
		return s.Memory.Undecided(ctx)
	}
	return func(yield func(Receipt, error) bool) { yield(Receipt{}, ErrCorrupt) }
}

func TestUndecidedEventsThatCannotBeReadAreReadLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &unreadable{Memory: NewMemory()}
		NewGate(store, GateOptions{}).mustReserve(t, event("e"), Forward).Attempt.Leave()
		store.fails.Store(2)
		s := openShop(store, Ask)
		defer s.mustClose(t)
		s.says(Reply{Kind: ReplyCommitted, Answer: done}, nil)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		s.mustBe(t, "e", StateCommitted)
		if n := s.of(NoticeScanFailed); len(n) != 2 || !errors.Is(n[0].Err, ErrCorrupt) || n[0].Key != (Key{}) {
			t.Fatalf("%+v", n)
		}
	})
}

// A damaged record stays damaged: each reload must not leave one more goroutine that reads the store for ever.
func TestReloadsDoNotPileUpScans(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &unreadable{Memory: NewMemory()}
		store.fails.Store(1 << 40)
		s := openShop(store, Ask)
		defer s.mustClose(t)
		for range 20 {
			stop := s.stop
			s.stop = s.Use(map[string]Policy{"shop": s.policy})
			stop()
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		before := store.scans.Load()
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := store.scans.Load() - before; n < 1 || n > 12 {
			t.Fatal(n, "scans in an hour")
		}
	})
}
