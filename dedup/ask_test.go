package dedup

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// app is an [Asker] that says what a test wants and notes what it was asked.
type app struct {
	mu    sync.Mutex // guards all below
	reply func(ctx context.Context, q Question) (Reply, error)
	asked []Question
	at    []time.Duration // since the test's start, beside asked
	began time.Time
	busy  map[Key]int // questions under way
	most  int         // of them at one time, of all events
	twice bool        // two of one event at one time
}

// newApp makes an app that knows nothing.
func newApp() *app {
	return (&app{began: time.Now(), busy: map[Key]int{}}).says(Reply{Kind: ReplyAbsent}, nil)
}

func (a *app) says(r Reply, err error) *app {
	return a.does(func(context.Context, Question) (Reply, error) { return r, err })
}

func (a *app) does(reply func(context.Context, Question) (Reply, error)) *app {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.reply = reply
	return a
}

// Ask implements [Asker].
func (a *app) Ask(ctx context.Context, q Question) (Reply, error) {
	a.mu.Lock()
	a.asked, a.at = append(a.asked, q), append(a.at, time.Since(a.began))
	a.busy[q.Key]++
	a.twice = a.twice || a.busy[q.Key] > 1
	under := 0
	for _, n := range a.busy {
		under += n
	}
	a.most = max(a.most, under)
	reply := a.reply
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.busy[q.Key]--
	}()
	return reply(ctx, q)
}

// times are when it was asked, since the test's start.
func (a *app) times() []time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.at)
}

func (a *app) questions() []Question {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.asked)
}

// log keeps a gate's notices.
type log struct {
	mu      sync.Mutex
	notices []Notice
}

func (l *log) note(n Notice) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.notices = append(l.notices, n)
}

// of are the notices of one kind.
func (l *log) of(kind NoticeKind) (found []Notice) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range l.notices {
		if n.Kind == kind {
			found = append(found, n)
		}
	}
	return found
}

// shop is a gate of the source "shop", its app, and what became known.
type shop struct {
	*Gate
	*app
	*log
	policy Policy
	stop   func()
}

// openShop makes a gate on a store; it is the one that resolves.
func openShop(store Store, p InDoubtPolicy) *shop {
	s := &shop{app: newApp(), log: &log{}}
	s.Gate = NewGate(store, GateOptions{Notify: s.note})
	s.policy = Policy{Lease: time.Minute, InDoubt: p, Asker: s.app}
	s.stop = s.Use(map[string]Policy{"shop": s.policy})
	return s
}

// inShop runs a test with a gate that asks, or what the policy says, and closes it.
func inShop(t *testing.T, p InDoubtPolicy, test func(*testing.T, *shop)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := openShop(NewMemory(), p)
		defer s.mustClose(t)
		test(t, s)
		if s.twice {
			t.Error("two questions about one event at a time")
		}
	})
}

func (s *shop) mustClose(t *testing.T) {
	t.Helper()
	began := time.Now()
	if err := s.Close(); err != nil || time.Since(began) != 0 {
		t.Fatal(err, time.Since(began))
	}
}

// attempt is a first delivery of the event.
func (s *shop) attempt(t *testing.T, id string) *Attempt {
	t.Helper()
	return s.mustReserve(t, event(id), Forward).Attempt
}

// mustLookUp and mustReserve are the gate's with the shop's policy.
func (s *shop) mustLookUp(t *testing.T, id Identity, want Kind) Verdict {
	t.Helper()
	v, err := s.LookUp(t.Context(), id, s.policy)
	if err != nil || v.Kind != want {
		t.Fatalf("look up: got %v, %v, want %v", v.Kind, err, want)
	}
	return v
}

func (s *shop) mustReserve(t *testing.T, id Identity, want Kind) Verdict {
	t.Helper()
	v, err := s.Reserve(t.Context(), id, s.policy)
	if err != nil || v.Kind != want || (v.Attempt != nil) != (want == Forward) {
		t.Fatalf("reserve: got %v, %v, want %v", v.Kind, err, want)
	}
	return v
}

// mustBe looks at an event as it is stored.
func (s *shop) mustBe(t *testing.T, id string, want State) Receipt {
	t.Helper()
	r, _, err := s.store.Lookup(t.Context(), event(id))
	if err != nil || r.State != want {
		t.Fatalf("%s is %v, %v; want %v", id, r.State, err, want)
	}
	return r
}

// mustHaveAsked holds the times of all questions against those that are wanted.
func (s *shop) mustHaveAsked(t *testing.T, want ...time.Duration) {
	t.Helper()
	synctest.Wait()
	if got := s.times(); !slices.Equal(got, want) {
		t.Fatalf("asked at %v, want %v", got, want)
	}
}

var done = Answer{Status: 201, Header: []Field{{"Content-Type", "text/plain"}}, Body: []byte("done")}

func TestWhatTheAppSaysMovesTheEvent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reply    Reply
		err      error
		state    State
		closed   bool // for good
		resolved bool // a notice says so
		asks     bool // goes on asking
	}{
		"committed":               {Reply{Kind: ReplyCommitted, Answer: done}, nil, StateCommitted, false, true, false},
		"rejected":                {Reply{Kind: ReplyRejected, Answer: done}, nil, StateRejected, false, true, false},
		"unknown":                 {Reply{Kind: ReplyAbsent}, nil, StateOpen, false, true, true},
		"unknown and fenced":      {Reply{Kind: ReplyFenced}, nil, StateOpen, true, true, false},
		"pending":                 {Reply{Kind: ReplyPending}, nil, StateReserved, false, false, true},
		"unreachable":             {Reply{}, ErrUnreachable, StateReserved, false, false, true},
		"nonsense":                {Reply{}, errors.New("<html>"), StateReserved, false, false, true},
		"no reply and no error":   {Reply{}, nil, StateReserved, false, false, true},
		"a reply there is not":    {Reply{Kind: replyEnd, Answer: done}, nil, StateReserved, false, false, true},
		"an answer with an error": {Reply{Kind: ReplyCommitted, Answer: done}, errors.New("cut off"), StateReserved, false, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inShop(t, Ask, func(t *testing.T, s *shop) {
				s.says(c.reply, c.err)
				a := s.attempt(t, "e")
				a.Leave()
				time.Sleep(time.Minute)
				s.mustHaveAsked(t, time.Minute)
				if q := s.questions()[0]; q != (Question{Key: a.Identity.Key, Count: 1, Token: a.Token}) {
					t.Fatal("asked about", q.Key, q.Count)
				}
				r := s.mustBe(t, "e", c.state)
				if (r.Closed == a.Number) != c.closed || r.State.Final() && (!r.AnsweredBy(a.Number) || !r.Answer.Equal(done) || r.Learned != LearnedOutcome) {
					t.Fatalf("%+v", r)
				}
				if doubt := c.reply.Kind == ReplyAbsent; r.InDoubtBefore != doubt {
					t.Fatal("flagged in doubt:", r.InDoubtBefore)
				}
				if n := s.of(NoticeResolved); (len(n) == 1) != c.resolved || len(n) > 0 && (n[0].Attempt != a.Number || n[0].Receipt.State != c.state) {
					t.Fatalf("%+v", n)
				}
				if n := len(s.of(NoticeUnanswered)); (n == 1) != (!c.resolved && c.reply.Kind != ReplyPending || c.err != nil) {
					t.Fatal(n, "notices of no answer")
				}
				if c.reply.Kind == ReplyPending && c.err == nil {
					if !r.Lease.Equal(time.Now().Add(time.Minute)) {
						t.Fatal("the lease ends", time.Until(r.Lease), "from now")
					}
				}
				time.Sleep(time.Hour)
				synctest.Wait()
				if more := len(s.times()) > 1; more != c.asks {
					t.Fatalf("asked at %v", s.times())
				}
				s.mustBe(t, "e", c.state)
			})
		})
	}
}

func TestADeliveryAsks(t *testing.T) {
	t.Parallel()
	inShop(t, Ask, func(t *testing.T, s *shop) {
		ask := func(want Kind) {
			t.Helper()
			if v, err := s.Gate.Ask(t.Context(), event("e"), s.policy); err != nil || v.Kind != want {
				t.Fatalf("got %v, %v, want %v", v.Kind, err, want)
			}
		}
		ask(First)
		a := s.attempt(t, "e")
		ask(Running)
		s.says(Reply{}, ErrUnreachable)
		a.Leave()
		s.mustHaveAsked(t)
		ask(InDoubt) // long before the lease is over
		s.mustHaveAsked(t, 0)
		ask(InDoubt) // again within the second: not asked again
		time.Sleep(999 * time.Millisecond)
		ask(InDoubt)
		if n := len(s.times()); n != 1 {
			t.Fatal(n, "questions in one second")
		}
		s.says(Reply{Kind: ReplyCommitted, Answer: done}, nil)
		time.Sleep(time.Millisecond)
		ask(Replay)
		ask(Replay)
		if n := len(s.times()); n > 2 {
			t.Fatal(s.times())
		}
	})
}

func TestADeliveryAsksOnlyWhereThePolicySaysSo(t *testing.T) {
	t.Parallel()
	inShop(t, Redeliver, func(t *testing.T, s *shop) {
		s.attempt(t, "e").Leave()
		for _, p := range []Policy{s.policy, policy, {Lease: time.Minute, InDoubt: HoldForPerson, Asker: s.app}, {Lease: time.Minute, InDoubt: Ask}} {
			if v, err := s.Gate.Ask(t.Context(), event("e"), p); err != nil || v.Kind != InDoubt {
				t.Fatal(v.Kind, err)
			}
		}
		other := event("e")
		other.Digest = Digest{66}
		asks := Policy{Lease: time.Minute, InDoubt: Ask, Asker: s.app}
		if v, err := s.Gate.Ask(t.Context(), other, asks); err != nil || v.Kind != Conflict {
			t.Fatal(v.Kind, err)
		}
		s.mustHaveAsked(t)
		s.attempt(t, "open").Leave()
		if v, err := s.Gate.Ask(t.Context(), event("open"), asks); err != nil || v.Kind != Again {
			t.Fatal(v.Kind, err)
		}
		if v, err := s.Gate.Ask(t.Context(), event("open"), asks); err != nil || v.Kind != Again {
			t.Fatal(v.Kind, err)
		}
		s.mustHaveAsked(t, 0) // an open event is the next delivery's: there is nothing to wait for
	})
}

func TestOfManyDeliveriesOneAsks(t *testing.T) {
	t.Parallel()
	inShop(t, Ask, func(t *testing.T, s *shop) {
		let := make(chan struct{})
		s.does(func(context.Context, Question) (Reply, error) {
			<-let
			return Reply{Kind: ReplyCommitted, Answer: done}, nil
		})
		s.attempt(t, "e").Leave()
		const many = 32
		verdicts := make(chan Kind, many)
		for range many {
			go func() {
				v, err := s.Gate.Ask(t.Context(), event("e"), s.policy)
				if err != nil {
					t.Error(err)
				}
				verdicts <- v.Kind
			}()
		}
		synctest.Wait()
		time.Sleep(time.Minute) // the end of the lease meets a question under way
		synctest.Wait()
		if n := len(s.times()); n != 1 || len(verdicts) != 0 {
			t.Fatalf("%d questions, %d verdicts", n, len(verdicts))
		}
		close(let)
		for range many {
			if kind := <-verdicts; kind != Replay {
				t.Fatal(kind)
			}
		}
		time.Sleep(time.Hour)
		s.mustHaveAsked(t, 0)
	})
}

func TestADeliveryThatIsGivenUpWaitsNoLonger(t *testing.T) {
	t.Parallel()
	inShop(t, Ask, func(t *testing.T, s *shop) {
		let := make(chan struct{})
		s.does(func(context.Context, Question) (Reply, error) { <-let; return Reply{Kind: ReplyPending}, nil })
		s.attempt(t, "e").Leave()
		time.Sleep(time.Minute)
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		began := time.Now()
		if v, err := s.Gate.Ask(ctx, event("e"), s.policy); err != nil || v.Kind != InDoubt || time.Since(began) != 3*time.Second {
			t.Fatal(v.Kind, err, time.Since(began))
		}
		s.mustHaveAsked(t, time.Minute)
		close(let)
	})
}

// A sender that hangs up says nothing of the app: the other events' questions do not wait for it.
func TestASenderThatHangsUpIsNotAnAppThatCannotBeReached(t *testing.T) {
	t.Parallel()
	inShop(t, Ask, func(t *testing.T, s *shop) {
		s.does(func(ctx context.Context, q Question) (Reply, error) {
			if q.Key.Event != "e" {
				return Reply{Kind: ReplyCommitted, Answer: done}, nil
			}
			<-ctx.Done()
			return Reply{}, errors.Join(ErrUnreachable, ctx.Err())
		})
		s.attempt(t, "other").Leave()
		time.Sleep(59 * time.Second)
		s.attempt(t, "e").Leave()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if v, err := s.Gate.Ask(ctx, event("e"), s.policy); err != nil || v.Kind != InDoubt {
			t.Fatal(v.Kind, err)
		}
		s.mustHaveAsked(t, 59*time.Second, time.Minute)
		s.mustBe(t, "other", StateCommitted)
		if n := s.of(NoticeUnanswered); len(n) != 0 {
			t.Fatal(n[0].Err)
		}
	})
}

func TestAnOwnerAsksAboutItsOwnAttempt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reply Reply
		state State
		meets Kind // a repeat, afterwards
	}{
		"committed":          {Reply{Kind: ReplyCommitted, Answer: done}, StateCommitted, Replay},
		"rejected":           {Reply{Kind: ReplyRejected, Answer: done}, StateRejected, Replay},
		"unknown":            {Reply{Kind: ReplyAbsent}, StateOpen, Again},
		"unknown and fenced": {Reply{Kind: ReplyFenced}, StateOpen, Again},
		"pending":            {Reply{Kind: ReplyPending}, StateReserved, Running},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inShop(t, Ask, func(t *testing.T, s *shop) {
				s.says(c.reply, nil)
				a := s.attempt(t, "e")
				reply, err := a.Ask(t.Context(), s.app)
				if err != nil {
					t.Fatal(err)
				}
				s.mustLookUp(t, event("e"), Running)
				r, err := a.Settle(t.Context(), reply, time.Minute)
				if err != nil || r.State != c.state || r.InDoubtBefore {
					t.Fatal(r.State, err)
				}
				if q := s.questions()[0]; q != (Question{Key: a.Identity.Key, Count: 1, Token: a.Token}) {
					t.Fatal("asked about", q.Key, q.Count)
				}
				if v := s.mustLookUp(t, event("e"), c.meets); c.meets == Replay && v.Receipt.Learned != LearnedOutcome {
					t.Fatal(v.Receipt.Learned)
				}
				if s.Running() != 0 {
					t.Fatal(s.Running())
				}
				// What is left to ask is asked: a second later while open, at the new lease's end while pending.
				time.Sleep(time.Minute)
				synctest.Wait()
				if asked := len(s.times()) > 1; asked != (c.reply.Kind == ReplyAbsent || c.reply.Kind == ReplyPending) {
					t.Fatal(s.times())
				}
			})
		})
	}
}

func TestNonsenseLeavesTheOwnersAttemptInDoubt(t *testing.T) {
	t.Parallel()
	inShop(t, Ask, func(t *testing.T, s *shop) {
		a := s.attempt(t, "e")
		if _, err := a.Settle(t.Context(), Reply{}, time.Minute); err == nil {
			t.Fatal("no reply is none")
		}
		s.mustLookUp(t, event("e"), InDoubt)
		if s.Running() != 0 {
			t.Fatal(s.Running())
		}
		if _, err := a.Settle(t.Context(), Reply{Kind: ReplyCommitted, Answer: done}, time.Minute); !errors.Is(err, ErrEnded) {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		s.mustHaveAsked(t, time.Minute)
	})
}

// While an event is open its newest attempt is asked about, and a delivery may make the next one meanwhile.
func TestAnAnswerAboutAnEarlierAttemptWakesTheLaterOne(t *testing.T) {
	t.Parallel()
	inShop(t, Ask, func(t *testing.T, s *shop) {
		let := make(chan struct{})
		s.does(func(context.Context, Question) (Reply, error) {
			<-let
			return Reply{Kind: ReplyCommitted, Answer: done}, nil
		})
		first := s.attempt(t, "e")
		if err := first.Abort(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		s.mustHaveAsked(t, time.Second)
		second := s.attempt(t, "e")
		waiter := make(chan Verdict, 1)
		go func() { v, _ := s.Wait(t.Context(), event("e"), s.policy); waiter <- v }()
		synctest.Wait()
		close(let)
		synctest.Wait()
		if !s.mustBe(t, "e", StateCommitted).AnsweredBy(first.Number) {
			t.Fatal("not the first attempt's answer")
		}
		select {
		case v := <-waiter:
			if v.Kind != Replay {
				t.Fatal(v.Kind)
			}
		default:
			t.Error("the waiter was not woken")
		}
		select {
		case <-second.Confirmed():
		default:
			t.Error("the attempt's owner was not woken")
		}
		second.Leave()
	})
}

func TestOtherAnswersAboutAnEarlierAttemptLeaveTheLaterOneAlone(t *testing.T) {
	t.Parallel()
	for _, kind := range []ReplyKind{ReplyAbsent, ReplyFenced, ReplyPending} {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			inShop(t, Ask, func(t *testing.T, s *shop) {
				let := make(chan struct{})
				s.does(func(context.Context, Question) (Reply, error) { <-let; return Reply{Kind: kind}, nil })
				first := s.attempt(t, "e")
				if err := first.Abort(t.Context()); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				synctest.Wait()
				second := s.attempt(t, "e")
				lease := s.mustBe(t, "e", StateReserved).Lease
				close(let)
				synctest.Wait()
				r := s.mustBe(t, "e", StateReserved)
				if !r.Lease.Equal(lease) || (r.Closed == first.Number) != (kind == ReplyFenced) {
					t.Fatalf("%+v", r)
				}
				s.mustLookUp(t, event("e"), Running)
				select {
				case <-second.Confirmed():
					t.Fatal("nothing was decided")
				default:
				}
				if _, err := second.Commit(t.Context(), done); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

func TestAReceiptOfAnotherSeedIsAskedForWithoutAToken(t *testing.T) {
	t.Parallel()
	g := NewGate(NewMemory(), GateOptions{})
	r, _, _, err := Step(Reserve{Identity: event("e"), At: noon, Lease: time.Minute, Seed: Seed{1}}, Receipt{}, false)
	if err != nil {
		t.Fatal(err)
	}
	if q := g.question(r); q.Token != "" || q.Key != r.Key || q.Count != 1 {
		t.Fatal("asked with a token that is not the attempt's")
	}
}
