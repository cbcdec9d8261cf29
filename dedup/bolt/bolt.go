// Package bolt keeps receipts in one file (bbolt). It is the store of a single gate.
//
// One goroutine writes: it takes every transition that queued up while the last group was being flushed, runs
// them as one transaction (two flushes) and gives each caller its own result. Reads run beside it.
//
// A failed commit is judged by what it may have left behind. If the disk was full and the transaction is gone,
// the callers get dedup.ErrNotWritten and the next group is tried as if nothing had been. After any other error
// nobody knows what is on the disk, not even after reading it back (bbolt shows a transaction whose last flush
// failed, and the kernel reports the next flush as good): the store then refuses reads and writes until it is
// opened again.
package bolt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"

	"github.com/einlass/einlass/dedup"
)

// Options are settings of a store. The zero value is good.
type Options struct {
	Timeout time.Duration // how long to wait for another process to let go of the file; default 3s
	MaxSize int64         // bytes the file may take; writes beyond it fail as on a full disk; default 0: no limit
}

// Store is an open file of receipts. It implements [dedup.Store].
type Store struct {
	path        string
	file        os.FileInfo // what path led to when it was opened
	db          *bbolt.DB
	id          [16]byte
	incarnation uint64
	seed        dedup.Seed

	submit sync.RWMutex // held for writing only by Close, for reading while something is put into queue
	closed bool         // guarded by submit
	queue  chan *op
	writer sync.WaitGroup

	durable atomic.Int64           // newest transaction whose commit has returned
	pending atomic.Pointer[group]  // the group being committed; nil between commits
	broken  atomic.Pointer[reason] // why the handle is given up; nil while it is good
	counts  atomic.Pointer[counts]
	failing atomic.Pointer[reason] // of the newest group that had to be written
	full    atomic.Bool            // a write found no room, and there is none yet
	count   struct{ transitions, groups, commits atomic.Uint64 }

	hooks hooks
}

// reason is an error that can be stored atomically.
type reason struct{ error }

// hooks let tests fail commits. They are set before the first use.
type hooks struct {
	beforeCommit func() error // the commit fails with this, and nothing of it is written
	afterCommit  func() error // the commit fails with this although it is written, as by a failed last flush

	free func(path string) (bytes int64, known bool) // in place of asking the disk
}

var _ dedup.Store = (*Store)(nil)

// Path is the file, as Open got it.
func (s *Store) Path() string { return s.path }

// ID tells this store from any other, for as long as the file lives.
func (s *Store) ID() [16]byte { return s.id }

// Seed implements [dedup.Store].
func (s *Store) Seed() dedup.Seed { return s.seed }

// Incarnation counts how often the file was opened.
func (s *Store) Incarnation() uint64 { return s.incarnation }

// Stats implements [dedup.Store]. A commit takes two flushes.
func (s *Store) Stats() dedup.Stats {
	commits := s.count.commits.Load()
	stats := dedup.Stats{
		Transitions: s.count.transitions.Load(),
		Groups:      s.count.groups.Load(),
		Commits:     commits,
		Syncs:       2 * commits,
		Receipts:    *s.counts.Load(),
	}
	if r := s.failing.Load(); r != nil {
		stats.Failing = r.error
	}
	return stats
}

// Close implements [dedup.Store]: what is queued is written first. Closing twice is harmless.
func (s *Store) Close() error {
	s.submit.Lock()
	if s.closed {
		s.submit.Unlock()
		return nil
	}
	s.closed = true
	close(s.queue)
	s.submit.Unlock()
	s.writer.Wait()
	if err := s.db.Close(); err != nil {
		return fmt.Errorf("closing %s: %w", s.path, err)
	}
	return nil
}

// Check reads the whole file and returns every inconsistency found, as one error. Lookups and
// writes go on meanwhile.
func (s *Store) Check(ctx context.Context) error {
	var found []error
	err := s.view(func(tx *bbolt.Tx) error {
		for err := range tx.Check() {
			found = append(found, err)
		}
		b, err := openBuckets(tx)
		if err != nil {
			return err
		}
		for _, bucket := range []*bbolt.Bucket{b.live, b.receipts} {
			if err := bucket.ForEach(func(k, v []byte) error {
				if _, err := decode(key(k), v); err != nil {
					found = append(found, err)
				}
				return ctx.Err()
			}); err != nil {
				return err
			}
		}
		return nil
	})
	return errors.Join(append(found, err)...)
}

// giveUp makes the handle refuse everything from now on, the first reason being kept. Recovery without a restart
// (copy what is readable into a new file, flush, rename, open) belongs here.
func (s *Store) giveUp(cause error) error {
	s.broken.CompareAndSwap(nil, &reason{fmt.Errorf(
		"%w: %s failed in a way that leaves its content unknown; it is not used until Caddy is restarted: %w",
		dedup.ErrUnavailable, s.path, cause)})
	return s.broken.Load().error
}

// usable returns why the handle was given up, or nil.
func (s *Store) usable() error {
	if r := s.broken.Load(); r != nil {
		return r.error
	}
	return nil
}

// inPlace returns why nothing may be written now, or nil: a file that was removed or replaced is still written to
// without an error, and the next process would find none of it.
func (s *Store) inPlace() error {
	info, err := os.Stat(s.path)
	if err == nil && os.SameFile(info, s.file) {
		return nil
	}
	return fmt.Errorf("%w: the open file is no longer at %s, it was removed or replaced: put it back, "+
		"or restart to go on with what is there", dedup.ErrUnavailable, s.path)
}

// sameFile tells whether path still leads to the open file.
func sameFile(path string, file *os.File) bool {
	a, errA := os.Stat(path)
	b, errB := file.Stat()
	return errA == nil && errB == nil && os.SameFile(a, b)
}
