package dedup

import (
	"context"
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
