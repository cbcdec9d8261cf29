package dedup

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
