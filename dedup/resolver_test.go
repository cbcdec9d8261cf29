package dedup

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

const s1 = time.Second

func TestQuestionsAreAskedWithGrowingGaps(t *testing.T) {
	t.Parallel()
	inShop(t, Ask, func(t *testing.T, s *shop) {
		s.says(Reply{}, errors.New("<html>"))
		s.attempt(t, "e").Leave()
		time.Sleep(time.Minute + 12*time.Minute)
		s.mustHaveAsked(t, 60*s1, 61*s1, 63*s1, 67*s1, 75*s1, 91*s1, 123*s1, 187*s1, 315*s1, 571*s1)
		within := func(from, to time.Duration) (n int) {
			for _, at := range s.times() {
				if from < at && at <= to {
					n++
				}
			}
			return n
		}
		time.Sleep(72 * time.Hour)
		synctest.Wait()
		if n := within(2*time.Hour, 3*time.Hour); n != 12 {
			t.Error(n, "questions in an hour of the first day")
		}
		if n := within(48*time.Hour, 72*time.Hour); n != 24 {
			t.Error(n, "questions in the third day")
		}
		s.mustBe(t, "e", StateReserved)
		s.says(Reply{Kind: ReplyCommitted, Answer: done}, nil)
		time.Sleep(time.Hour)
		synctest.Wait()
		s.mustBe(t, "e", StateCommitted)
	})
}

func TestAnOpenEventIsAskedAboutUntilItsNextAttempt(t *testing.T) {
	t.Parallel()
	inShop(t, Ask, func(t *testing.T, s *shop) {
		first := s.attempt(t, "e")
		first.Leave()
		time.Sleep(70 * time.Second)
		s.mustHaveAsked(t, 60*s1, 61*s1, 63*s1, 67*s1)
		second := s.attempt(t, "e")
		time.Sleep(time.Hour)
		s.mustHaveAsked(t, 60*s1, 61*s1, 63*s1, 67*s1) // not while it runs
		if err := second.Abort(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(s1)
		s.mustHaveAsked(t, 60*s1, 61*s1, 63*s1, 67*s1, 70*s1+time.Hour+s1)
		if q := s.questions()[4]; q.Token != second.Token || q.Count != 2 {
			t.Fatal("asked about another attempt than the newest")
		}
	})
}

func TestAPendingAnswerIsAskedForAgain(t *testing.T) {
	t.Parallel()
	inShop(t, Ask, func(t *testing.T, s *shop) {
		s.says(Reply{Kind: ReplyPending}, nil)
		s.attempt(t, "e").Leave()
		time.Sleep(24 * time.Hour)
		s.mustLookUp(t, event("e"), InDoubt) // however long it takes
		s.mustReserve(t, event("e"), InDoubt)
		if n := len(s.of(NoticeResolved)) + len(s.of(NoticeUnanswered)); n != 0 {
			t.Fatal(n, "notices")
		}
		s.says(Reply{Kind: ReplyRejected, Answer: done}, nil)
		time.Sleep(longestGap)
		synctest.Wait()
		s.mustBe(t, "e", StateRejected)
	})
}

func TestAfterARestartEverythingUndecidedIsAskedAboutAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := NewMemory()
		before := NewGate(store, GateOptions{}) // and never closed: its process was killed
		reserve := func(id string) *Attempt { return before.mustReserve(t, event(id), Forward).Attempt }
		tokens := map[string]string{}
		for id, end := range map[string]func(*Attempt) error{
			"running":  func(*Attempt) error { return nil },
			"left":     func(a *Attempt) error { a.Leave(); return nil },
			"accepted": func(a *Attempt) error { a.Accept(); return nil },
			"pending":  func(a *Attempt) error { return a.Pending(t.Context(), time.Hour) },
			"aborted":  func(a *Attempt) error { return a.Abort(t.Context()) },
		} {
			a := reserve(id)
			tokens[id] = a.Token
			if err := end(a); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := reserve("committed").Commit(t.Context(), done); err != nil {
			t.Fatal(err)
		}
		if _, err := reserve("fenced").Settle(t.Context(), Reply{Kind: ReplyFenced}, time.Minute); err != nil {
			t.Fatal(err)
		}
		reserve("held").Leave()
		if _, err := store.Apply(t.Context(), Hold{Key{"shop", "held"}, time.Now().Add(time.Minute)}); err != nil {
			t.Fatal(err)
		}

		time.Sleep(10 * time.Second)
		s := openShop(store, Ask)
		defer s.mustClose(t)
		s.says(Reply{Kind: ReplyCommitted, Answer: done}, nil)
		synctest.Wait()
		if s.most != 1 {
			t.Errorf("%d questions at a time", s.most)
		}
		if len(s.questions()) != len(tokens) {
			t.Fatalf("asked %+v", s.questions())
		}
		for i, q := range s.questions() {
			if q.Token != tokens[q.Key.Event] || q.Token == "" || s.times()[i] != 0 {
				t.Errorf("%q is asked about after %v, with another token or none", q.Key.Event, s.times()[i])
			}
		}
		for id := range tokens {
			s.mustBe(t, id, StateCommitted)
		}
	})
}

func TestALaterStartOfUseFindsWhatIsInDoubt(t *testing.T) {
	t.Parallel()
	inShop(t, Ask, func(t *testing.T, s *shop) {
		s.stop()
		s.attempt(t, "left").Leave()
		s.attempt(t, "accepted").Accept()
		if err := s.attempt(t, "open").Abort(t.Context()); err != nil {
			t.Fatal(err)
		}
		running := s.attempt(t, "running")
		time.Sleep(30 * time.Second)
		defer s.Use(map[string]Policy{"shop": s.policy})()
		s.mustHaveAsked(t, 30*s1) // the open one; the other leases are not over
		time.Sleep(30 * time.Second)
		synctest.Wait()
		seen := map[string]bool{}
		for _, q := range s.questions() {
			seen[q.Key.Event] = true
		}
		if !seen["left"] || !seen["accepted"] || !seen["open"] || seen["running"] {
			t.Fatal(seen)
		}
		running.Leave()
		synctest.Wait()
		if q := s.questions(); q[len(q)-1].Key.Event != "running" {
			t.Fatal("its lease was over when it was left")
		}
	})
}

func TestAnAppThatIsSlowHoldsUpItsOwnEventsOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := openShop(NewMemory(), Ask)
		defer s.mustClose(t)
		slow := newApp().does(func(ctx context.Context, _ Question) (Reply, error) {
			<-ctx.Done()
			return Reply{}, ctx.Err()
		})
		defer s.Use(map[string]Policy{"shop": s.policy, "mill": {Lease: time.Minute, InDoubt: Ask, Asker: slow}})()
		for i := range 10 {
			id := event(fmt.Sprint(i))
			s.mustReserve(t, id, Forward).Attempt.Leave()
			id.Source = "mill"
			s.mustReserve(t, id, Forward).Attempt.Leave()
		}
		s.says(Reply{Kind: ReplyCommitted, Answer: done}, nil)
		time.Sleep(time.Minute)
		s.mustHaveAsked(t, slices.Repeat([]time.Duration{time.Minute}, 10)...)
		if n := len(slow.times()); n != 1 || s.most != 1 {
			t.Fatal(n, s.most)
		}
	})
}

func TestOneQuestionFindsOutThatTheAppIsBack(t *testing.T) {
	t.Parallel()
	inShop(t, Ask, func(t *testing.T, s *shop) {
		s.says(Reply{}, ErrUnreachable)
		const many = 100
		for i := range many {
			s.attempt(t, fmt.Sprint(i)).Leave()
		}
		time.Sleep(5 * time.Minute)
		s.mustHaveAsked(t, 60*s1, 61*s1, 63*s1, 67*s1, 75*s1, 91*s1, 123*s1, 183*s1, 243*s1)
		if len(s.of(NoticeUnanswered)) != 9 {
			t.Fatal(len(s.of(NoticeUnanswered)))
		}
		s.says(Reply{Kind: ReplyCommitted, Answer: done}, nil)
		time.Sleep(longestGap)
		synctest.Wait()
		for i := range many {
			s.mustBe(t, fmt.Sprint(i), StateCommitted)
		}
	})
}

func TestCloseEndsTheQuestion(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := openShop(NewMemory(), Ask)
		s.does(func(ctx context.Context, _ Question) (Reply, error) {
			<-ctx.Done()
			return Reply{}, ctx.Err()
		})
		s.attempt(t, "e").Leave()
		s.attempt(t, "later").Leave()
		time.Sleep(time.Minute)
		s.mustHaveAsked(t, time.Minute)
		s.mustClose(t)
		if n := len(s.of(NoticeUnanswered)); n != 0 {
			t.Fatal("the app is blamed for the end of the process")
		}
		// All of these come too late, and none of them hangs or starts anything.
		s.stop()
		s.Use(map[string]Policy{"shop": s.policy})()
		if _, err := s.Gate.Ask(t.Context(), event("e"), s.policy); !errors.Is(err, ErrClosed) {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		s.mustHaveAsked(t, time.Minute)
	}) // fails if a goroutine is left
}

func TestCloseDuringADeliverysQuestion(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := openShop(NewMemory(), Ask)
		let := make(chan struct{})
		s.does(func(context.Context, Question) (Reply, error) {
			<-let
			return Reply{Kind: ReplyCommitted, Answer: done}, nil
		})
		s.attempt(t, "e").Leave()
		asking := make(chan error, 2)
		for range 2 {
			go func() { _, err := s.Gate.Ask(t.Context(), event("e"), s.policy); asking <- err }()
		}
		synctest.Wait()
		s.mustClose(t)
		close(let)
		for range 2 {
			if err := <-asking; !errors.Is(err, ErrClosed) {
				t.Fatal(err)
			}
		}
	})
}

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
