package bolt

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/anishathalye/porcupine"
	"go.etcd.io/bbolt"

	"github.com/einlass/einlass/dedup"
	"github.com/einlass/einlass/dedup/deduptest"
)

// twoTransactions checks in one transaction and saves in another (C3 of the protocol notes).
type twoTransactions struct{ *Store }

func (s twoTransactions) Apply(ctx context.Context, t dedup.Transition) (dedup.Result, error) {
	cur, found, err := s.Lookup(ctx, t.Of())
	if err != nil {
		return dedup.Result{}, dedup.NotWritten(err)
	}
	next, write, res, err := dedup.Step(t, cur, found)
	if err != nil || !write {
		return res, err
	}
	return res, s.db.Update(func(tx *bbolt.Tx) error {
		b, err := openBuckets(tx)
		if err != nil {
			return err
		}
		s.durable.Store(int64(tx.ID()))
		return b.save(next.Hash(), cur, next, t.Of())
	})
}

// now and then a store does wrong: the number counts its calls.
type nowAndThen struct {
	*Store
	calls *atomic.Int64
}

func (n nowAndThen) now() bool { return n.calls.Add(1)%20 == 0 }

// staleLookups answers some lookups from what it has read before.
type staleLookups struct {
	nowAndThen
	before *atomic.Pointer[map[dedup.Key]dedup.Receipt]
}

func (s staleLookups) Lookup(ctx context.Context, id dedup.Identity) (dedup.Receipt, bool, error) {
	known := *s.before.Load()
	if r, found := known[id.Key]; found && s.now() {
		return r, true, nil
	}
	r, found, err := s.Store.Lookup(ctx, id)
	if _, read := known[r.Key]; found && !read { // the first that was read stays
		next := map[dedup.Key]dedup.Receipt{r.Key: r}
		for k, v := range known {
			next[k] = v
		}
		s.before.CompareAndSwap(s.before.Load(), &next)
	}
	return r, found, err
}

// forgetful acknowledges some transitions that it does not write.
type forgetful struct{ nowAndThen }

func (s forgetful) Apply(ctx context.Context, t dedup.Transition) (dedup.Result, error) {
	if !s.now() {
		return s.Store.Apply(ctx, t)
	}
	cur, found, err := s.Lookup(ctx, t.Of())
	if err != nil {
		return dedup.Result{}, dedup.NotWritten(err)
	}
	_, _, res, err := dedup.Step(t, cur, found)
	return res, err
}

// liar says of some transitions that they are certainly not written, and has written them.
type liar struct{ nowAndThen }

func (s liar) Apply(ctx context.Context, t dedup.Transition) (dedup.Result, error) {
	res, err := s.Store.Apply(ctx, t)
	if err == nil && res.Changed && s.now() {
		return dedup.Result{}, dedup.NotWritten(dedup.ErrClosed)
	}
	return res, err
}

// twice applies some transitions two times, as after an answer that was lost.
type twice struct{ nowAndThen }

func (s twice) Apply(ctx context.Context, t dedup.Transition) (dedup.Result, error) {
	res, err := s.Store.Apply(ctx, t)
	if err == nil && res.Changed && s.now() {
		return s.Store.Apply(ctx, t)
	}
	return res, err
}

// The check has teeth: a store that breaks the rules is found, at the store and above the gate.
func TestAStoreThatBreaksTheOrderIsFound(t *testing.T) {
	t.Parallel()
	for name, breaks := range map[string]func(*Store) dedup.Store{
		"check and save are two transactions": func(s *Store) dedup.Store { return twoTransactions{s} },
		"lookups are stale": func(s *Store) dedup.Store {
			nothing := &atomic.Pointer[map[dedup.Key]dedup.Receipt]{}
			nothing.Store(&map[dedup.Key]dedup.Receipt{})
			return staleLookups{nowAndThen{s, new(atomic.Int64)}, nothing}
		},
		"what is acknowledged is not written": func(s *Store) dedup.Store { return forgetful{nowAndThen{s, new(atomic.Int64)}} },
		"what is not acknowledged is written": func(s *Store) dedup.Store { return liar{nowAndThen{s, new(atomic.Int64)}} },
		"a transition is applied twice":       func(s *Store) dedup.Store { return twice{nowAndThen{s, new(atomic.Int64)}} },
	} {
		t.Run(name+", at the store", func(t *testing.T) {
			t.Parallel()
			mustBeFound(t, storeModel, func(s *Store, random *rand.Rand) *recorder {
				h := newStoreHistory(t, breaks(s), random)
				h.run(random)
				return h.recorder
			})
		})
		t.Run(name+", above the gate", func(t *testing.T) {
			t.Parallel()
			mustBeFound(t, gateModel, func(s *Store, random *rand.Rand) *recorder {
				h := newGateHistory(t, random)
				h.above(breaks(s))
				for h.calls.Load() < h.length {
					h.run(t.Context(), random, min(h.length, h.calls.Load()+100))
					h.at = h.at.Add(deduptest.Lease / 2)
				}
				return h.recorder
			})
		})
	}
}

// mustBeFound runs histories of a broken store until one is found to have no order.
func mustBeFound(t *testing.T, model porcupine.Model, one func(*Store, *rand.Rand) *recorder) {
	t.Helper()
	base := seeded(t)
	for n := range 50 {
		s := withoutSync(t, newFile(t))
		r := one(s, rand.New(rand.NewPCG(base, uint64(n))))
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if ok, _ := linear(t, model, r.ops); !ok {
			t.Logf("found in history %d, of %d operations", n+1, len(r.ops))
			return
		}
	}
	t.Fatalf("seed %d: not found in 50 histories", base)
}
