package bolt

import (
	"context"
	"iter"

	"go.etcd.io/bbolt"

	"github.com/einlass/einlass/dedup"
)

// undecidedStep is how many records are read in one transaction: a long one would keep the file from using freed pages
// again.
const undecidedStep = 256

// Undecided implements [dedup.Store]. It reads in small steps, so an event that is decided and another that is begun
// meanwhile may or may not be among them; what it gives may not be flushed yet. Damaged records are left out, and an
// error at the end, which names the first.
func (s *Store) Undecided(ctx context.Context) iter.Seq2[dedup.Receipt, error] {
	return func(yield func(dedup.Receipt, error) bool) {
		var (
			after   key
			more    = true
			damaged error
		)
		for begin := true; more; begin = false {
			if err := ctx.Err(); err != nil {
				yield(dedup.Receipt{}, err)
				return
			}
			var found []dedup.Receipt
			err := s.view(func(tx *bbolt.Tx) (err error) {
				b, err := openBuckets(tx)
				if err != nil {
					return err
				}
				var bad error
				found, more, bad = b.undecided(&after, begin)
				damaged = first(damaged, bad)
				return nil
			})
			if err != nil {
				yield(dedup.Receipt{}, err)
				return
			}
			for _, r := range found {
				if !yield(r, nil) {
					return
				}
			}
		}
		if damaged != nil {
			yield(dedup.Receipt{}, damaged)
		}
	}
}

// first is the earlier of two errors.
func first(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// undecided reads a step of the undecided records behind after, or from the beginning.
func (b buckets) undecided(after *key, begin bool) (found []dedup.Receipt, more bool, damaged error) {
	c := b.live.Cursor()
	k, v := c.Seek(after[:])
	if !begin && k != nil && key(k) == *after {
		k, v = c.Next()
	}
	for n := 0; k != nil; k, v = c.Next() {
		if n++; n > undecidedStep {
			return found, true, damaged
		}
		*after = key(k)
		if r, err := decode(*after, v); err != nil {
			damaged = first(damaged, err)
		} else {
			found = append(found, r)
		}
	}
	return found, false, damaged
}
