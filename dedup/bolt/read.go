package bolt

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/einlass/einlass/dedup"
)

// Lookup implements [dedup.Store]. It waits only for a write of the very event it reads, and only while that write
// is being flushed: bbolt shows a transaction to readers before its last flush, and a receipt that may be gone after
// a power failure must not be answered from.
func (s *Store) Lookup(ctx context.Context, id dedup.Identity) (dedup.Receipt, bool, error) {
	for {
		if err := ctx.Err(); err != nil {
			return dedup.Receipt{}, false, err
		}
		var (
			r     dedup.Receipt
			found bool
			wait  <-chan struct{}
		)
		err := s.view(func(tx *bbolt.Tx) error {
			b, err := openBuckets(tx)
			if err != nil {
				return err
			}
			var on touched
			_, r, found, on, err = b.find(id)
			wait = s.undecided(int64(tx.ID()), on)
			return err
		})
		if wait != nil {
			select {
			case <-wait:
				continue
			case <-ctx.Done():
				return dedup.Receipt{}, false, ctx.Err()
			}
		}
		if err == nil {
			// Once more, for a commit that failed in between: its transaction may be what was read.
			err = s.usable()
		}
		if err != nil {
			return dedup.Receipt{}, false, err
		}
		return r, found, nil
	}
}

// undecided returns what to wait for before a reader of transaction seen may use what it read, or nil.
func (s *Store) undecided(seen int64, on touched) <-chan struct{} {
	if seen <= s.durable.Load() {
		return nil
	}
	g := s.pending.Load()
	if g == nil || g.tx != seen {
		return over // decided between the two loads: read again
	}
	if g.touches(on) {
		return g.done
	}
	return nil // the group holds other events only: these are as they were before it
}

var over = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// view runs a read transaction. A page that cannot be read (damaged, or cut off with the end of the file) is an
// error, not the end of the process.
func (s *Store) view(read func(*bbolt.Tx) error) (err error) {
	if err := s.usable(); err != nil {
		return err
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: reading %s: %v; restore it from a backup", dedup.ErrCorrupt, s.path, p)
		}
	}()
	err = s.db.View(read)
	if errors.Is(err, berrors.ErrDatabaseNotOpen) {
		return dedup.ErrClosed
	}
	return err
}
