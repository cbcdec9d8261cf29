package bolt

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/einlass/einlass/dedup"
	"github.com/einlass/einlass/dedup/deduptest"
)

// storeCall is an operation on the store: a transition, or a lookup.
type storeCall struct {
	content string // what the events have in common that a replay guard may take for one
	id      dedup.Identity
	apply   dedup.Transition // nil: a lookup
}

type storeAnswer struct {
	result  dedup.Result // of a lookup, only the receipt
	found   bool         // by a lookup
	rule    error        // why the rules have refused it
	unknown bool
}

// twins are two events with the same content, as a store that keeps the rules has them. With a guard they may be one.
type twins struct {
	receipts [2]*dedup.Receipt
	guard    int // 1 + the one that the content leads to; 0: neither
}

func twin(id dedup.Identity) int { return int(id.Event[len(id.Event)-1] - 'a') }

func (w twins) load(id dedup.Identity) (place int, r dedup.Receipt, found bool) {
	place = twin(id)
	if w.receipts[place] == nil && id.Guard && w.guard > 0 {
		place = w.guard - 1
	}
	if w.receipts[place] == nil {
		return place, dedup.Receipt{}, false
	}
	return place, *w.receipts[place], true
}

// storeModel is the store as one caller after another sees it: load, dedup.Step, save.
var storeModel = porcupine.Model{
	Partition: partition(func(in any) string { return in.(storeCall).content }),
	Init:      func() any { return twins{} },
	Step: func(state, in, out any) (bool, any) {
		w, call, told := state.(twins), in.(storeCall), out.(storeAnswer)
		place, cur, found := w.load(call.id)
		if call.apply == nil {
			return told.found == found && reflect.DeepEqual(told.result.Receipt, cur), w
		}
		next, write, res, err := dedup.Step(call.apply, cur, found)
		if write {
			w.receipts[place] = &next
			if call.id.Guard && w.guard == 0 {
				w.guard = place + 1
			}
		}
		if told.unknown {
			return true, w
		}
		_, _, rule := fate(nil, err)
		return told.rule == rule && reflect.DeepEqual(told.result, res), w //nolint:errorlint // the very sentinel
	},
	Equal: func(a, b any) bool {
		v, w := a.(twins), b.(twins)
		return v.guard == w.guard && sameReceipt(v.receipts[0], w.receipts[0]) && sameReceipt(v.receipts[1], w.receipts[1])
	},
}

// storeHistory is a store with some callers at it.
type storeHistory struct {
	*recorder
	t       testing.TB
	store   dedup.Store
	guarded bool
	calls   atomic.Int64
	length  int64
	closeAt int64 // the call at which somebody closes the store
	callers sync.WaitGroup

	seenMu sync.Mutex
	seen   map[string]dedup.Receipt // what was last told of an event
}

// callers is how many operations are under way at once.
const callers = 6

// run lets the callers work until there were enough operations, or the store is of no use any more.
func (h *storeHistory) run(random *rand.Rand) {
	for client := range callers {
		own := rand.New(rand.NewPCG(random.Uint64(), 0))
		h.callers.Go(func() {
			for failures := 0; failures < 3; {
				n := h.calls.Add(1)
				if n > h.length {
					return
				}
				if n == h.closeAt {
					if err := h.store.Close(); err != nil {
						h.t.Error(err)
					}
				}
				if h.call(client, own, int(n)) {
					failures = 0
				} else {
					failures++
				}
			}
		})
	}
	h.callers.Wait()
}

// eventNear is one of the few events that the calls near the n-th are about. When they are final, others are there.
func (h *storeHistory) eventNear(n, choice int) (content string, id dedup.Identity) {
	content = fmt.Sprint(n/100 + choice%2)
	return content, deduptest.Event(content+string(rune('a'+choice/2%2)), content)
}

// look looks up every event that calls are about.
func (h *storeHistory) look() {
	for choice := range 4 {
		h.callers.Go(func() {
			content, id := h.eventNear(int(h.calls.Load()), choice)
			called := h.now()
			r, found, err := h.store.Lookup(h.t.Context(), id)
			if !notRead(h.t, err) {
				h.add(callers+choice, called, storeCall{content: content, id: id}, storeAnswer{result: dedup.Result{Receipt: r}, found: found}, false)
			}
		})
	}
}

// call does one operation and tells whether the store has said anything.
func (h *storeHistory) call(client int, random *rand.Rand, n int) bool {
	content, id := h.eventNear(n, random.IntN(4))
	id.Guard = h.guarded && random.IntN(4) > 0
	h.seenMu.Lock()
	known := h.seen[id.Event]
	h.seenMu.Unlock()
	call := storeCall{content: content, id: id, apply: randomStep(random, id, known)}
	ctx, cancel := context.WithCancel(h.t.Context())
	defer cancel()
	if random.IntN(20) == 0 {
		go cancel() // a caller that gives up
	}
	var told storeAnswer
	var err error
	called := h.now()
	if call.apply == nil {
		told.result.Receipt, told.found, err = h.store.Lookup(ctx, id)
		if notRead(h.t, err) {
			return ctx.Err() != nil
		}
	} else {
		call.id = call.apply.Of()
		told.result, err = h.store.Apply(ctx, call.apply)
		var happened bool
		if happened, told.unknown, told.rule = fate(h.t, err); !happened {
			return ctx.Err() != nil
		}
	}
	h.add(client, called, call, told, told.unknown)
	if !told.unknown {
		h.seenMu.Lock()
		defer h.seenMu.Unlock()
		h.seen[id.Event] = told.result.Receipt
	}
	return !told.unknown
}

// randomStep is a transition of an event of which a receipt is known, perhaps an old one, or nil for a lookup.
func randomStep(random *rand.Rand, id dedup.Identity, known dedup.Receipt) dedup.Transition {
	after := time.Duration(random.Int64N(int64(3 * deduptest.Lease)))
	attempt, key := known.Attempt, id.Key
	if n := len(known.Tokens); n > 0 {
		key = known.Key
		if random.IntN(3) == 0 {
			attempt = known.Tokens[random.IntN(n)].Attempt
		}
	}
	outcome := dedup.Abort
	if random.IntN(6) == 0 {
		outcome = dedup.Outcome(1 + random.IntN(2))
	}
	switch n := random.IntN(100); {
	case n < 35:
		return nil
	case n < 60:
		return deduptest.Reserve(id, after, dedup.InDoubtPolicy(random.IntN(6)/4)) // mostly Redeliver
	case n < 72:
		return deduptest.Finish(key, attempt, outcome, after)
	case n < 86:
		c := deduptest.Confirm(known, attempt, outcome, after)
		c.Key = key
		return c
	case n < 94:
		return deduptest.Absent(key, attempt, random.IntN(3) == 0, after)
	case n < 98:
		return deduptest.Extend(key, attempt, after)
	default:
		return dedup.Hold{Key: key, At: deduptest.Start.Add(after)}
	}
}

func newStoreHistory(t testing.TB, store dedup.Store, random *rand.Rand) *storeHistory {
	return &storeHistory{
		recorder: &recorder{}, t: t, store: store, guarded: random.IntN(2) == 0,
		length: historyLength/2 + random.Int64N(historyLength), seen: map[string]dedup.Receipt{},
	}
}

func TestConcurrentCallersOfTheStoreSeeOneOrder(t *testing.T) {
	t.Parallel()
	manyHistories(t, *histories, storeModel, func(t *testing.T, random *rand.Rand) *recorder {
		s := mustOpen(t, newFile(t))
		h := newStoreHistory(t, s, random)
		for length := h.length; h.calls.Load() < length; { // it is opened anew now and then
			restore := func() {}
			switch random.IntN(3) {
			case 0:
				h.length = min(h.calls.Load()+random.Int64N(200), length)
			case 1:
				restore = trouble(t, s, random, h.look, func() {})
			}
			h.closeAt = h.calls.Load() + random.Int64N(400) // in the middle of everything, or never
			h.run(random)
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			h.length = length
			restore()
			s = mustOpen(t, s.path)
			h.store = s
		}
		checked(t, s)
		return h.recorder
	})
}
