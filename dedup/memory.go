package dedup

import (
	"context"
	"crypto/rand"
	"iter"
	"sync"
)

// Memory is a [Store] that forgets everything when the process ends: the reference that other stores are compared
// with, and a quick one for tests.
type Memory struct {
	seed Seed

	mu       sync.Mutex // guards all below
	receipts map[[16]byte]Receipt
	guard    map[[16]byte][16]byte // GuardHash to the receipt's key
	stats    Stats
	closed   bool
}

// NewMemory makes an empty store.
func NewMemory() *Memory {
	m := &Memory{receipts: map[[16]byte]Receipt{}, guard: map[[16]byte][16]byte{}}
	_, _ = rand.Read(m.seed[:]) // never fails, says its documentation
	return m
}

// Lookup implements [Store].
func (m *Memory) Lookup(ctx context.Context, id Identity) (Receipt, bool, error) {
	if err := ctx.Err(); err != nil {
		return Receipt{}, false, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return Receipt{}, false, ErrClosed
	}
	_, r, found := m.load(id)
	return r.clone(), found, nil
}

// Apply implements [Store].
func (m *Memory) Apply(ctx context.Context, t Transition) (Result, error) {
	if err := ctx.Err(); err != nil {
		return Result{}, NotWritten(err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return Result{}, NotWritten(ErrClosed)
	}
	m.stats.Transitions++
	m.stats.Groups++
	id := t.Of()
	key, cur, found := m.load(id)
	next, write, res, err := Step(t, cur, found)
	if err != nil {
		res.Receipt = res.Receipt.clone()
		return res, err
	}
	if write {
		m.stats.Commits++
		if found {
			m.stats.Receipts[cur.State]--
		}
		m.stats.Receipts[next.State]++
		m.receipts[key] = next.clone()
		if _, known := m.guard[GuardHash(id.Source, id.Digest)]; id.Guard && !known {
			m.guard[GuardHash(id.Source, id.Digest)] = key
		}
	}
	res.Receipt = res.Receipt.clone()
	return res, nil
}

// load finds the receipt of an event and the key it is, or would be, kept under.
func (m *Memory) load(id Identity) ([16]byte, Receipt, bool) {
	key := id.Hash()
	if r, found := m.receipts[key]; found || !id.Guard {
		return key, r, found
	}
	if first, known := m.guard[GuardHash(id.Source, id.Digest)]; known {
		return first, m.receipts[first], true
	}
	return key, Receipt{}, false
}

// Undecided implements [Store].
func (m *Memory) Undecided(ctx context.Context) iter.Seq2[Receipt, error] {
	return func(yield func(Receipt, error) bool) {
		undecided, err := m.undecided(ctx)
		if err != nil {
			yield(Receipt{}, err)
			return
		}
		for _, r := range undecided {
			if err := ctx.Err(); err != nil {
				yield(Receipt{}, err)
				return
			}
			if !yield(r, nil) {
				return
			}
		}
	}
}

func (m *Memory) undecided(ctx context.Context) (found []Receipt, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, ErrClosed
	}
	for _, r := range m.receipts {
		if !r.State.Final() {
			found = append(found, r.clone())
		}
	}
	return found, nil
}

// Seed implements [Store].
func (m *Memory) Seed() Seed { return m.seed }

// Stats implements [Store].
func (m *Memory) Stats() Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stats
}

// Close implements [Store].
func (m *Memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	return nil
}
