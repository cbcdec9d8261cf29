package dedup

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Time in these tests is that of their synctest bubble.

var policy = Policy{Lease: time.Minute}

func event(id string) Identity {
	return Identity{Key: Key{"shop", id}, Type: "t", Digest: Digest{1}}
}

func guarded(id string, digest byte) Identity {
	return Identity{Key: Key{"shop", id}, Type: "t", Digest: Digest{digest}, Guard: true}
}

// inBubble runs a test with a gate whose clock is the bubble's.
func inBubble(t *testing.T, test func(*testing.T, *Gate)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, NewGate(NewMemory(), GateOptions{})) })
}

func (g *Gate) mustReserve(t *testing.T, id Identity, want Kind) Verdict {
	t.Helper()
	v, err := g.Reserve(t.Context(), id, policy)
	if err != nil || v.Kind != want || (v.Attempt != nil) != (want == Forward) {
		t.Fatalf("reserve: got %v, %v, want %v", v.Kind, err, want)
	}
	return v
}

func (g *Gate) mustLookUp(t *testing.T, id Identity, want Kind) Verdict {
	t.Helper()
	v, err := g.LookUp(t.Context(), id, policy)
	if err != nil || v.Kind != want {
		t.Fatalf("look up: got %v, %v, want %v", v.Kind, err, want)
	}
	return v
}

func TestAFirstDeliveryIsForwardedAndItsRepeatReplayed(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, g *Gate) {
		g.mustLookUp(t, event("e"), First)
		a := g.mustReserve(t, event("e"), Forward).Attempt
		if len(a.Token) != 48 || a.Count != 1 || a.InDoubt || a.Identity.Key != (Key{"shop", "e"}) || g.Running() != 1 {
			t.Fatalf("%#v", a)
		}
		if strings.Contains(a.String()+a.GoString(), a.Token) {
			t.Fatal("the token is printed")
		}
		stored := g.mustLookUp(t, event("e"), Running).Receipt
		if stored.Tokens[0] != (AttemptToken{a.Number, HashToken(a.Token)}) {
			t.Fatalf("%+v", stored)
		}
		g.mustReserve(t, event("e"), Running)
		r, err := a.Commit(t.Context(), Answer{Status: 201})
		if err != nil || !r.AnsweredBy(a.Number) || g.Running() != 0 {
			t.Fatalf("%+v, %v", r, err)
		}
		if v := g.mustLookUp(t, event("e"), Replay); v.Receipt.Answer.Status != 201 {
			t.Fatalf("%+v", v)
		}
		g.mustReserve(t, event("e"), Replay)
	})
}

func TestManyDeliveriesOneAttempt(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, g *Gate) {
		const many = 64
		attempts := make(chan *Attempt, many)
		verdicts := make(chan Verdict, many)
		var group sync.WaitGroup
		for i := range many {
			group.Go(func() {
				id := guarded("e", 1)
				if i%3 == 0 {
					id = guarded(string(rune('a'+i)), 1) // the same event under the guard
				}
				v, err := g.Reserve(t.Context(), id, policy)
				switch {
				case err != nil:
					t.Error(err)
				case v.Kind == Forward:
					attempts <- v.Attempt
				case v.Kind == Running:
					if v, err = g.Wait(t.Context(), id, policy); err != nil {
						t.Error(err)
					}
					verdicts <- v
				default:
					t.Errorf("got %v", v.Kind)
				}
			})
		}
		synctest.Wait()
		if len(attempts) != 1 || len(verdicts) != 0 {
			t.Fatalf("%d attempts, %d decided", len(attempts), len(verdicts))
		}
		a := <-attempts
		if _, err := a.Commit(t.Context(), Answer{Status: 202}); err != nil {
			t.Fatal(err)
		}
		group.Wait()
		close(verdicts)
		n := 0
		for v := range verdicts {
			n++
			if v.Kind != Replay || v.Receipt.Answer.Status != 202 || v.Receipt.Key != a.Identity.Key {
				t.Fatalf("%+v", v)
			}
		}
		if n != many-1 {
			t.Fatalf("%d waiters were told", n)
		}
	})
}

func TestWaitersAreToldWhatTheAttemptHasLedTo(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end  func(*Attempt) error
		want Kind
	}{
		"commit": {func(a *Attempt) error { _, err := a.Commit(context.Background(), Answer{}); return err }, Replay},
		"reject": {func(a *Attempt) error { _, err := a.Reject(context.Background(), Answer{}); return err }, Replay},
		"abort":  {func(a *Attempt) error { return a.Abort(context.Background()) }, Aborted},
		"leave":  {func(a *Attempt) error { a.Leave(); return nil }, InDoubt},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, g *Gate) {
				a := g.mustReserve(t, event("e"), Forward).Attempt
				told := make(chan Verdict, 1)
				go func() {
					v, err := g.Wait(t.Context(), event("e"), policy)
					if err != nil {
						t.Error(err)
					}
					told <- v
				}()
				synctest.Wait()
				if len(told) != 0 {
					t.Fatal("told before the end")
				}
				if err := c.end(a); err != nil {
					t.Fatal(err)
				}
				if v := <-told; v.Kind != c.want {
					t.Fatalf("got %v, want %v", v.Kind, c.want)
				}
				// Nothing to wait for any more: the same at once.
				if v, err := g.Wait(t.Context(), event("e"), policy); err != nil || v.Kind != c.want {
					t.Fatalf("got %v, %v", v.Kind, err)
				}
			})
		})
	}
}

func TestWaitingEndsWithItsContext(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, g *Gate) {
		a := g.mustReserve(t, event("e"), Forward).Attempt
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		start := time.Now()
		if _, err := g.Wait(ctx, event("e"), policy); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		if took := time.Since(start); took != 5*time.Second {
			t.Fatal(took)
		}
		a.Leave()
	})
}

func TestALeftAttemptIsInDoubtUntilItsLeaseIsOver(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, g *Gate) {
		first := g.mustReserve(t, event("e"), Forward).Attempt
		first.Leave()
		if v := g.mustLookUp(t, event("e"), InDoubt); v.RetryAfter != time.Minute {
			t.Fatal(v.RetryAfter)
		}
		time.Sleep(time.Minute - time.Millisecond)
		if v := g.mustReserve(t, event("e"), InDoubt); v.RetryAfter != time.Second {
			t.Fatal(v.RetryAfter)
		}
		time.Sleep(time.Millisecond)
		g.mustLookUp(t, event("e"), Again)
		a := g.mustReserve(t, event("e"), Forward).Attempt
		if !a.InDoubt || a.Count != 2 || a.Number <= first.Number || a.Token == first.Token {
			t.Fatalf("%#v", a)
		}
		if err := a.Abort(t.Context()); err != nil {
			t.Fatal(err)
		}
		// What the first attempt did is still not known.
		if a := g.mustReserve(t, event("e"), Forward).Attempt; !a.InDoubt || a.Count != 3 {
			t.Fatalf("%#v", a)
		}
	})
}

func TestHoldForPersonNeverForwardsAgain(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, g *Gate) {
		hold := Policy{Lease: time.Minute, InDoubt: HoldForPerson}
		g.mustReserve(t, event("e"), Forward).Attempt.Leave()
		time.Sleep(time.Minute)
		v, err := g.Reserve(t.Context(), event("e"), hold)
		if err != nil || v.Kind != Held {
			t.Fatal(v.Kind, err)
		}
		g.mustLookUp(t, event("e"), Held)
		g.mustReserve(t, event("e"), Held) // durably: whatever the policy is now
	})
}

func TestALongAttemptIsNotDoubledAfterItsLease(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, g *Gate) {
		a := g.mustReserve(t, event("e"), Forward).Attempt
		time.Sleep(time.Hour)
		g.mustLookUp(t, event("e"), Running)
		g.mustReserve(t, event("e"), Running)
		if r, err := a.Commit(t.Context(), Answer{Status: 200}); err != nil || r.State != StateCommitted {
			t.Fatal(r, err)
		}
	})
}

func TestAnAttemptEndsOnce(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, g *Gate) {
		a := g.mustReserve(t, event("e"), Forward).Attempt
		if _, err := a.Commit(t.Context(), Answer{Status: 200}); err != nil {
			t.Fatal(err)
		}
		a.Leave()
		if err := a.Abort(t.Context()); err != nil {
			t.Fatal(err)
		}
		if r, err := a.Reject(t.Context(), Answer{Status: 422}); err != nil || r.Answer.Status != 200 {
			t.Fatal(r, err)
		}

		a = g.mustReserve(t, event("f"), Forward).Attempt
		a.Leave()
		if _, err := a.Commit(t.Context(), Answer{Status: 200}); !errors.Is(err, ErrEnded) {
			t.Fatal(err)
		}
		g.mustLookUp(t, event("f"), InDoubt)
		if g.Running() != 0 {
			t.Fatal(g.Running())
		}
	})
}

func TestDrainWaitsForEveryAttempt(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, g *Gate) {
		if err := g.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		one := g.mustReserve(t, event("1"), Forward).Attempt
		two := g.mustReserve(t, event("2"), Forward).Attempt
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := g.Drain(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		drained := make(chan error, 1)
		go func() { drained <- g.Drain(t.Context()) }()
		one.Leave()
		synctest.Wait()
		if len(drained) != 0 {
			t.Fatal("drained with an attempt running")
		}
		two.Leave()
		if err := <-drained; err != nil {
			t.Fatal(err)
		}
	})
}

func TestAnAbortByCallbackFreesTheEventWhileTheAnswerIsUnderWay(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, g *Gate) {
		first := g.mustReserve(t, event("e"), Forward).Attempt
		if _, err := g.Confirm(t.Context(), first.Identity.Key, first.Token, Abort, Answer{}); err != nil {
			t.Fatal(err)
		}
		<-first.Confirmed()
		second := g.mustReserve(t, event("e"), Forward).Attempt
		first.Leave()
		g.mustLookUp(t, event("e"), Running)
		if g.Running() != 1 {
			t.Fatal(g.Running())
		}
		if r, err := second.Commit(t.Context(), Answer{Status: 200}); err != nil || !r.AnsweredBy(second.Number) {
			t.Fatal(r, err)
		}
	})
}

func TestMisuseIsRefused(t *testing.T) {
	t.Parallel()
	g := NewGate(NewMemory(), GateOptions{})
	for name, try := range map[string]func() (Verdict, error){
		"no event": func() (Verdict, error) { return g.Reserve(t.Context(), event(""), policy) },
		"no lease": func() (Verdict, error) { return g.Reserve(t.Context(), event("e"), Policy{}) },
	} {
		if v, err := try(); !errors.Is(err, ErrNotWritten) || v.Attempt != nil || g.Running() != 0 {
			t.Errorf("%s: %+v, %v", name, v, err)
		}
	}
}
