package bolt

import (
	"context"
	"errors"
	"iter"

	"go.etcd.io/bbolt"

	"github.com/einlass/einlass/dedup"
)

// undecidedStep is how many records are read in one transaction: a long one would keep the file from using freed pages
// again.
const undecidedStep = 256

// Undecided implements [dedup.Store]. It reads in small steps, so an event that is decided and another that is begun
// meanwhile may or may not be among them. A damaged record is left out, and an error at the end.
func (s *Store) Undecided(ctx context.Context) iter.Seq2[dedup.Receipt, error] {
	return func(yield func(dedup.Receipt, error) bool) {
		var (
			after   key
			more    = true
			damaged error
		)
		for first := true; more; first = false {
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
				found, more, bad = b.undecided(&after, first)
				damaged = errors.Join(damaged, bad)
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

// undecided reads a step of the undecided records behind after, or from the first.
func (b buckets) undecided(after *key, first bool) (found []dedup.Receipt, more bool, damaged error) {
	c := b.live.Cursor()
	k, v := c.Seek(after[:])
	if !first && k != nil && key(k) == *after {
		k, v = c.Next()
	}
	for n := 0; k != nil; k, v = c.Next() {
		if n++; n > undecidedStep {
			return found, true, damaged
		}
		*after = key(k)
		if r, err := decode(*after, v); err != nil {
			damaged = errors.Join(damaged, err)
		} else {
			found = append(found, r)
		}
	}
	return found, false, damaged
}
