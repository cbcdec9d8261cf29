package dedup

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Deliveries, callbacks, questions and reloads of some events at one time. In the end the app has committed them all.
func TestAStorm(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		inShop(t, Ask, func(t *testing.T, s *shop) {
			const events = 8
			var committed [events]atomic.Bool
			dice := func(n int) func() int {
				random := rand.New(rand.NewPCG(seed, uint64(n)))
				return func() int { return random.IntN(1000) }
			}
			var mu sync.Mutex
			roll := dice(1000)
			s.does(func(_ context.Context, q Question) (Reply, error) {
				mu.Lock()
				n := roll()
				mu.Unlock()
				time.Sleep(time.Duration(n) * time.Millisecond)
				var i int
				_, _ = fmt.Sscan(q.Key.Event, &i)
				switch {
				case n%3 == 0:
					return Reply{}, ErrUnreachable
				case committed[i].Load():
					return Reply{Kind: ReplyCommitted, Answer: done}, nil
				}
				return Reply{Kind: []ReplyKind{ReplyAbsent, ReplyPending}[n%2]}, nil
			})
			var group sync.WaitGroup
			for w := range 24 {
				group.Go(func() {
					roll, i := dice(w), w%events
					id := event(fmt.Sprint(i))
					for range 30 {
						time.Sleep(time.Duration(roll()) * 20 * time.Millisecond)
						v, err := s.Reserve(t.Context(), id, s.policy)
						if err != nil {
							t.Error(err)
							return
						}
						switch v.Kind {
						case Running:
							ctx, cancel := context.WithTimeout(t.Context(), time.Duration(roll())*time.Millisecond)
							_, _ = s.Wait(ctx, id, s.policy)
							cancel()
						case InDoubt:
							_, _ = s.Gate.Ask(t.Context(), id, s.policy)
						case Forward:
							s.act(t, v.Attempt, roll, &committed[i])
						}
					}
				})
			}
			group.Go(func() {
				for range 20 {
					time.Sleep(15 * time.Second)
					old := s.stop
					s.stop = s.Use(map[string]Policy{"shop": s.policy})
					old()
				}
			})
			group.Wait()
			for i := range committed {
				committed[i].Store(true)
			}
			time.Sleep(time.Hour)
			synctest.Wait()
			for i := range events {
				s.mustBe(t, fmt.Sprint(i), StateCommitted)
			}
			if s.Running() != 0 {
				t.Fatal(s.Running())
			}
			s.mustNotice(t, 0, 0)
		})
	}
}

// act is an app's and its gate's turn with an attempt.
func (s *shop) act(t *testing.T, a *Attempt, roll func() int, committed *atomic.Bool) {
	time.Sleep(time.Duration(roll()) * 100 * time.Millisecond)
	n := roll()
	if n%5 == 0 {
		committed.Store(true)
	}
	outcome := Abort
	if committed.Load() {
		outcome = Commit
	}
	if n%7 == 0 {
		if _, err := s.Confirm(t.Context(), a.Identity.Key, a.Token, outcome, done); err != nil && !committed.Load() {
			t.Error(err)
		}
	}
	switch (n / 100) % 4 {
	case 0:
		a.Leave()
	case 1:
		a.Accept()
	case 2:
		_ = a.Pending(t.Context(), 2*time.Minute)
	case 3:
		if outcome == Commit {
			_, _ = a.Commit(t.Context(), done)
		} else {
			_ = a.Abort(t.Context())
		}
	}
}
