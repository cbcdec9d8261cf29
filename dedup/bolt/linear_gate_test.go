package bolt

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/einlass/einlass/dedup"
	"github.com/einlass/einlass/dedup/deduptest"
)

// gateHistory is a gate with some deliveries and callbacks at it.
type gateHistory struct {
	*recorder
	t       testing.TB
	gate    *dedup.Gate
	seed    dedup.Seed
	at      time.Time
	calls   atomic.Int64
	length  int64
	serial  atomic.Int64 // makes every answer another one
	callers sync.WaitGroup

	mu       sync.Mutex
	events   map[string]dedup.Receipt // what was last told of an event
	attempts []*dedup.Attempt         // that nobody is at
}

// run lets the callers work until there were enough calls, or ctx ends.
func (h *gateHistory) run(ctx context.Context, random *rand.Rand, length int64) {
	for client := range callers {
		own := rand.New(rand.NewPCG(random.Uint64(), 0))
		h.callers.Go(func() {
			for ctx.Err() == nil {
				n := h.calls.Add(1)
				if n > length {
					return
				}
				if !h.end(ctx, client, own) {
					h.deliver(ctx, client, own, int(n))
				}
			}
		})
	}
	h.callers.Wait()
}

// eventNear is one of the few events that the calls near the n-th are about. When they are final, others are there.
func (h *gateHistory) eventNear(n, choice int) dedup.Identity {
	return deduptest.Event(fmt.Sprintf("%d-%c", n/80, 'a'+choice%3), "x")
}

// look is a delivery of every event that calls are about, which only looks.
func (h *gateHistory) look() {
	for choice := range 3 {
		h.callers.Go(func() {
			h.lookUp(h.t.Context(), callers+choice, h.eventNear(int(h.calls.Load()), choice))
		})
	}
}

func (h *gateHistory) lookUp(ctx context.Context, client int, id dedup.Identity) {
	called := h.now()
	v, err := h.gate.LookUp(ctx, id, gatePolicy)
	if !notRead(h.t, err) {
		h.told(client, called, gateCall{do: doLookUp, id: id, at: h.at}, gateAnswer{kind: v.Kind, receipt: ours(v.Receipt)})
	}
}

var gatePolicy = dedup.Policy{Lease: deduptest.Lease}

// deliver is a delivery, or a callback about an attempt of the event.
func (h *gateHistory) deliver(ctx context.Context, client int, random *rand.Rand, n int) {
	id := h.eventNear(n, random.IntN(3))
	call := gateCall{id: id, at: h.at, seed: h.seed}
	called := h.now()
	switch n := random.IntN(10); {
	case n < 4:
		h.lookUp(ctx, client, id)
	case n < 7:
		call.do = doReserve
		v, err := h.gate.Reserve(ctx, id, gatePolicy)
		happened, unknown, _ := fate(h.t, err)
		if happened {
			h.told(client, called, call, gateAnswer{kind: v.Kind, receipt: ours(v.Receipt), unknown: unknown})
		}
		if v.Kind == dedup.Forward && err == nil {
			h.mu.Lock()
			h.attempts = append(h.attempts, v.Attempt)
			h.mu.Unlock()
		}
	default:
		h.confirm(ctx, client, random, call)
	}
}

// confirm is a callback about one of the event's attempts.
func (h *gateHistory) confirm(ctx context.Context, client int, random *rand.Rand, call gateCall) {
	h.mu.Lock()
	known := h.events[call.id.Event]
	h.mu.Unlock()
	if len(known.Tokens) == 0 {
		return
	}
	call.do, call.attempt = doConfirm, known.Tokens[random.IntN(len(known.Tokens))].Attempt
	token := h.seed.Token(call.id.Key, call.attempt)
	call.token = dedup.HashToken(token)
	call.outcome, call.answer = h.outcome(random)
	if known.Answer != nil && random.IntN(2) == 0 { // as it stands
		call.outcome, call.answer = dedup.Outcome(1+min(int(known.State-dedup.StateCommitted), 1)), *known.Answer
	}
	called := h.now()
	r, err := h.gate.Confirm(ctx, call.id.Key, token, call.outcome, call.answer)
	happened, unknown, rule := fate(h.t, err)
	if !happened {
		return
	}
	told := gateAnswer{receipt: ours(r), rule: rule, unknown: unknown}
	if err == nil {
		then := call
		then.do, then.attempt = doRelease, r.Attempt
		h.add(client, called, then, told, false)
	}
	h.told(client, called, call, told)
}

// end ends one of the attempts that run, now and then, and tells whether it did.
func (h *gateHistory) end(ctx context.Context, client int, random *rand.Rand) bool {
	h.mu.Lock()
	if len(h.attempts) == 0 || random.IntN(4) > 0 {
		h.mu.Unlock()
		return false
	}
	i := random.IntN(len(h.attempts))
	a := h.attempts[i]
	h.attempts = append(h.attempts[:i], h.attempts[i+1:]...)
	h.mu.Unlock()
	call := gateCall{do: doFinish, id: a.Identity, attempt: a.Number, at: h.at}
	then := call
	then.do = doEnd
	var told gateAnswer
	var err error
	called := h.now()
	call.outcome, call.answer = h.outcome(random)
	switch {
	case random.IntN(6) == 0:
		a.Leave()
		then.do = doLeave
		h.add(client, called, then, gateAnswer{}, false)
		return true
	case call.outcome == dedup.Commit:
		told.receipt, err = a.Commit(ctx, call.answer)
	case call.outcome == dedup.Reject:
		told.receipt, err = a.Reject(ctx, call.answer)
	default:
		told.silent, err = true, a.Abort(ctx)
	}
	if err != nil {
		then.do = doLeave
	}
	var happened bool
	happened, told.unknown, told.rule = fate(h.t, err)
	told.receipt = ours(told.receipt)
	h.add(client, called, then, gateAnswer{}, false)
	if happened {
		h.told(client, called, call, told)
	}
	return true
}

// outcome is mostly that nothing has happened, or every event would be final at once.
func (h *gateHistory) outcome(random *rand.Rand) (dedup.Outcome, dedup.Answer) {
	outcome := dedup.Outcome(max(0, random.IntN(12)-9))
	if outcome == dedup.Abort {
		return outcome, dedup.Answer{}
	}
	return outcome, dedup.Answer{Status: 200, Body: []byte(fmt.Sprint(h.serial.Add(1)))}
}

// told notes an operation and remembers what it tells of the event.
func (h *gateHistory) told(client int, called int64, call gateCall, told gateAnswer) {
	h.add(client, called, call, told, told.unknown)
	if !told.unknown && told.rule == nil && !told.silent {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.events[call.id.Event] = told.receipt
	}
}

// restarts is the end of the process for every event: no attempt runs any more.
func (h *gateHistory) restarts() {
	h.attempts = nil
	known := map[string]bool{}
	for _, op := range h.ops {
		call := op.Input.(gateCall)
		if id := call.id; !known[id.Event] {
			known[id.Event] = true
			h.add(0, h.now(), gateCall{do: doRestart, id: id}, gateAnswer{}, false)
		}
	}
}

func newGateHistory(t testing.TB, random *rand.Rand) *gateHistory {
	return &gateHistory{
		recorder: &recorder{}, t: t, at: deduptest.Start,
		length: historyLength/2 + random.Int64N(historyLength), events: map[string]dedup.Receipt{},
	}
}

// above gives the history a gate above the store.
func (h *gateHistory) above(store dedup.Store) {
	h.gate, h.seed = dedup.NewGate(store, dedup.GateOptions{Now: func() time.Time { return h.at }}), store.Seed()
}

func TestConcurrentDeliveriesSeeOneOrder(t *testing.T) {
	t.Parallel()
	manyHistories(t, *histories, gateModel, func(t *testing.T, random *rand.Rand) *recorder {
		return deliveries(t, random, mustOpen, func(s *Store) dedup.Store { return s })
	})
}

// hesitant lets others run before it hands out what it has read or written: what was read may be old then.
type hesitant struct{ *Store }

func (s hesitant) Lookup(ctx context.Context, id dedup.Identity) (dedup.Receipt, bool, error) {
	defer hesitate()
	return s.Store.Lookup(ctx, id)
}

func (s hesitant) Apply(ctx context.Context, t dedup.Transition) (dedup.Result, error) {
	defer hesitate()
	return s.Store.Apply(ctx, t)
}

func hesitate() {
	for range rand.IntN(200) {
		runtime.Gosched()
	}
}

// The same without a disk to wait for, which would put nearly everything in one order by itself.
func TestConcurrentDeliveriesSeeOneOrderAtAnyPace(t *testing.T) {
	t.Parallel()
	manyHistories(t, (*histories+1)/2, gateModel, func(t *testing.T, random *rand.Rand) *recorder {
		return deliveries(t, random, withoutSync, func(s *Store) dedup.Store { return hesitant{s} })
	})
}

// deliveries is one history.
func deliveries(t *testing.T, random *rand.Rand, open func(testing.TB, string) *Store, wrap func(*Store) dedup.Store) *recorder {
	t.Helper()
	s := open(t, newFile(t))
	h := newGateHistory(t, random)
	h.above(wrap(s))
	for h.calls.Load() < h.length {
		ctx, cancel := context.WithCancel(t.Context())
		restore := func() {}
		if random.IntN(4) == 0 {
			restore = trouble(t, s, random, h.look, cancel) // nothing is tried again then, see Attempt
		}
		h.run(ctx, random, min(h.length, h.calls.Load()+random.Int64N(150)))
		cancel()
		h.at = h.at.Add(time.Duration(random.Int64N(int64(deduptest.Lease))))
		if s.usable() != nil || random.IntN(4) == 0 {
			if err := h.gate.Close(); err != nil {
				t.Error(err)
			}
			restore()
			h.restarts()
			s = open(t, s.path)
			h.above(wrap(s))
		} else {
			s.hooks = hooks{}
		}
	}
	checked(t, s)
	return h.recorder
}
