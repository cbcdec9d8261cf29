package bolt

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync/atomic"

	"go.etcd.io/bbolt"

	"github.com/einlass/einlass/dedup"
	"github.com/einlass/einlass/dedup/failpoint"
)

// Bounds of the queue and of one group. A group is a transaction: its size bounds memory, not time, for it takes
// whoever is there and never waits for more.
const (
	queueLength = 1024
	groupLength = 512
	groupBytes  = 8 << 20
)

// yields is how often the writer lets others run before it closes a group: those that the last group has woken are
// about to bring the next transitions. At rest nobody else wants to run, and this takes no time.
const yields = 3

// op is a transition on its way through the writer.
type op struct {
	transition dedup.Transition
	taken      atomic.Bool // by the writer, or by a caller that has given up
	done       chan struct{}

	// Written by the writer before done is closed.
	result dedup.Result
	err    error
}

// Apply implements [dedup.Store]. While the queue is full a reservation fails at once, since its sender can come
// back; the end of an attempt waits for ctx, since it cannot.
func (s *Store) Apply(ctx context.Context, t dedup.Transition) (dedup.Result, error) {
	o := &op{transition: t, done: make(chan struct{})}
	if err := s.enqueue(ctx, o); err != nil {
		return dedup.Result{}, dedup.NotWritten(err)
	}
	select {
	case <-o.done:
	case <-ctx.Done():
		if o.taken.CompareAndSwap(false, true) {
			return dedup.Result{}, dedup.NotWritten(ctx.Err())
		}
		<-o.done // it is being written: the result is near, and better than not knowing
	}
	return o.result, o.err
}

func (s *Store) enqueue(ctx context.Context, o *op) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.submit.RLock()
	defer s.submit.RUnlock()
	if s.closed {
		return dedup.ErrClosed
	}
	select {
	case s.queue <- o:
		return nil
	default:
	}
	if _, isNew := o.transition.(dedup.Reserve); isNew {
		return fmt.Errorf("%w: %d transitions are queued", dedup.ErrUnavailable, queueLength)
	}
	select { // the writer takes from the queue until Close, and Close waits for this
	case s.queue <- o:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// write is the one writer. It ends when the queue is closed and empty.
func (s *Store) write() {
	defer s.writer.Done()
	debug.SetPanicOnFault(true) // see view
	for o := range s.queue {
		g := &group{done: make(chan struct{})}
		g.take(o)
		for range yields {
			runtime.Gosched()
		}
		for len(g.ops) < groupLength && g.bytes < groupBytes {
			more := false
			select {
			case o, more = <-s.queue:
			default:
			}
			if !more {
				break
			}
			g.take(o)
		}
		if len(g.ops) > 0 {
			s.run(g)
		}
	}
}

// run takes a group through one transaction and answers its callers.
func (s *Store) run(g *group) {
	s.count.groups.Add(1)
	s.count.transitions.Add(uint64(len(g.ops)))
	g.results = make([]outcome, len(g.ops))
	err := s.transact(g)
	switch {
	case err != nil:
		s.failing.Store(&reason{err})
		for i := range g.results {
			g.results[i] = outcome{err: err}
		}
	case g.writes:
		s.failing.Store(nil)
	}
	s.pending.Store(nil)
	close(g.done)
	for i, o := range g.ops {
		o.result, o.err = g.results[i].result, g.results[i].err
		close(o.done)
	}
}

// transact runs the group's steps and commits. An error is everybody's.
func (s *Store) transact(g *group) (err error) {
	if err := errors.Join(s.usable(), s.inPlace()); err != nil {
		return dedup.NotWritten(err)
	}
	tx, err := s.db.Begin(true)
	if err != nil {
		return dedup.NotWritten(fmt.Errorf("%w: %s: %w", dedup.ErrUnavailable, s.path, err))
	}
	defer func() {
		if p := recover(); p != nil { // bbolt panics on damaged pages
			err = s.giveUp(fmt.Errorf("%w: %v; restore it from a backup", dedup.ErrCorrupt, p))
			letGo(tx)
		}
	}()
	after, err := g.steps(tx, *s.counts.Load(), s.roomToReserve())
	if err != nil || !g.writes {
		_ = tx.Rollback()
		if err != nil {
			return dedup.NotWritten(fmt.Errorf("%w: %s: %w", dedup.ErrUnavailable, s.path, err))
		}
		return nil
	}
	g.tx = int64(tx.ID())
	s.pending.Store(g)
	if err := s.commit(tx, g.tx); err != nil {
		return err
	}
	s.count.commits.Add(1)
	s.counts.Store(&after)
	s.durable.Store(g.tx)
	return nil
}

// letGo frees the locks of a transaction that panicked, so that Close does not wait for them for ever.
func letGo(tx *bbolt.Tx) {
	defer func() { _ = recover() }()
	_ = tx.Rollback()
}

// commit makes the transaction durable, or finds out what its failure means.
func (s *Store) commit(tx *bbolt.Tx, id int64) error {
	err := s.tryCommit(tx)
	if err == nil {
		return nil
	}
	if isFull(err) && s.rolledBack(id) {
		s.full.Store(true)
		return dedup.NotWritten(fmt.Errorf("%w: no room for %s: %w", dedup.ErrUnavailable, s.path, err))
	}
	return s.giveUp(err)
}

func (s *Store) tryCommit(tx *bbolt.Tx) error {
	if s.hooks.beforeCommit != nil {
		if err := s.hooks.beforeCommit(); err != nil {
			_ = tx.Rollback()
			return err
		}
	}
	failpoint.Hit(failpoint.GroupBefore)
	if err := tx.Commit(); err != nil {
		return err
	}
	failpoint.Hit(failpoint.GroupAfter)
	if s.hooks.afterCommit != nil {
		return s.hooks.afterCommit()
	}
	return nil
}

// rolledBack tells whether a failed transaction is certainly not to be seen by anyone: some file systems report a
// full disk only at the flush, when the transaction is visible already.
func (s *Store) rolledBack(id int64) bool {
	var seen int64
	err := s.view(func(tx *bbolt.Tx) error {
		seen = int64(tx.ID())
		return nil
	})
	return err == nil && seen < id
}
