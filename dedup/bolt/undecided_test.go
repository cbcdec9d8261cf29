package bolt

import (
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/einlass/einlass/dedup"
)

// everyReserved reserves n events at once and returns their keys in the file's order.
func everyReserved(t *testing.T, s *Store, n int) (keys []key) {
	t.Helper()
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			if _, err := reserve(t, s, fmt.Sprint(i)); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if err := s.db.View(func(tx *bbolt.Tx) error {
		return tx.Bucket(bucketLive).ForEach(func(k, _ []byte) error {
			keys = append(keys, key(k))
			return nil
		})
	}); err != nil || len(keys) != n {
		t.Fatal(len(keys), err)
	}
	return keys
}

// A single damaged record must not keep the gate from asking about all the others.
func TestADamagedRecordDoesNotHideTheOtherUndecided(t *testing.T) {
	t.Parallel()
	const events = 2*undecidedStep + 100
	within := func(from, to int) (places []int) {
		for i := from; i < to; i++ {
			places = append(places, i)
		}
		return places
	}
	for name, damaged := range map[string][]int{
		"none":                        nil,
		"the first":                   {0},
		"the last":                    {events - 1},
		"the last of a step":          {undecidedStep - 1},
		"the first of a step":         {undecidedStep},
		"around the end of a step":    within(undecidedStep-2, undecidedStep+2),
		"more than a step in a row":   within(undecidedStep-10, 2*undecidedStep+10),
		"all":                         within(0, events),
		"in every step, not in a row": {7, undecidedStep + 7, 2*undecidedStep + 7},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := opened(t)
			keys := everyReserved(t, s, events)
			bad := map[key]bool{}
			for _, i := range damaged {
				bad[keys[i]] = true
			}
			damage := func() { // done twice, it is undone: the file must be consistent when the test ends
				if err := s.db.Update(func(tx *bbolt.Tx) error {
					s.durable.Store(int64(tx.ID()))
					live := tx.Bucket(bucketLive)
					for k := range bad {
						v := append([]byte(nil), live.Get(k[:])...)
						v[len(v)/2] ^= 1
						if err := live.Put(k[:], v); err != nil {
							return err
						}
					}
					return nil
				}); err != nil {
					t.Fatal(err)
				}
			}
			damage()
			defer damage()
			found := map[key]bool{}
			var failed error
			for r, err := range s.Undecided(t.Context()) {
				if failed != nil || err != nil && !reflect.DeepEqual(r, dedup.Receipt{}) || bad[r.Hash()] || found[r.Hash()] {
					t.Fatalf("%+v, %v, after %d and the error %v", r, err, len(found), failed)
				}
				if failed = err; err == nil {
					found[r.Hash()] = true
				}
			}
			if len(found) != events-len(bad) || errors.Is(failed, dedup.ErrCorrupt) != (len(bad) > 0) || failed != nil && len(bad) == 0 {
				t.Fatalf("%d of %d found, %d damaged: %v", len(found), events, len(bad), failed)
			}
		})
	}
}

func TestTheUndecidedOfAStoreGivenUpCannotBeRead(t *testing.T) {
	t.Parallel()
	s := opened(t)
	mustReserve(t, s, "e")
	cause := errors.New("the disk has gone")
	_ = s.giveUp(cause)
	n := 0
	for _, err := range s.Undecided(t.Context()) {
		if n++; n > 1 || !errors.Is(err, dedup.ErrUnavailable) || !errors.Is(err, cause) {
			t.Fatal(n, err)
		}
	}
	if n != 1 {
		t.Fatal("no error")
	}
}
