package bolt

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/einlass/einlass/dedup"
)

// Linearizability: what concurrent callers were told must be what they would have been told one after another, each at
// some moment between its call and its return. Histories of the real store, and of the gate above it, are recorded and
// searched for such an order (porcupine); the model of both is dedup.Step.
var histories = flag.Int("histories", 200, "how many histories of the store, and how many of the gate, are checked for linearizability")

const (
	historyLength = 350 // operations, on average
	shards        = 4   // of the histories: they wait for the disk together
	checkTime     = time.Minute
)

// recorder notes the operations of one history, with times of a logical clock.
type recorder struct {
	clock atomic.Int64
	mu    sync.Mutex
	ops   []porcupine.Operation
}

func (r *recorder) now() int64 { return r.clock.Add(1) }

// add notes an operation that was called then and returns now. One of which nobody knows whether it has taken place
// may still do so at any later time: it returns at infinity.
func (r *recorder) add(client int, called int64, in, out any, unknown bool) {
	op := porcupine.Operation{ClientId: client, Input: in, Call: called, Output: out, Return: r.now()}
	if unknown {
		op.Return = math.MaxInt64
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ops = append(r.ops, op)
}

// partition splits a history by what its operations are about: an order for each is an order for all.
func partition(about func(in any) string) func([]porcupine.Operation) [][]porcupine.Operation {
	return func(history []porcupine.Operation) (parts [][]porcupine.Operation) {
		place := map[string]int{}
		for _, op := range history {
			i, known := place[about(op.Input)]
			if !known {
				i = len(parts)
				place[about(op.Input)] = i
				parts = append(parts, nil)
			}
			parts[i] = append(parts[i], op)
		}
		return parts
	}
}

// linear tells whether there is an order, and if not, of which operations.
func linear(t testing.TB, model porcupine.Model, history []porcupine.Operation) (ok bool, why string) {
	t.Helper()
	for _, part := range model.Partition(history) {
		switch porcupine.CheckOperationsTimeout(model, part, checkTime) {
		case porcupine.Ok:
		case porcupine.Unknown:
			return false, fmt.Sprintf("no order of %d operations was found in %v", len(part), checkTime)
		default:
			slices.SortFunc(part, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
			var all strings.Builder
			for _, op := range part {
				fmt.Fprintf(&all, "\n%d-%d client %d: %+v\n    %+v", op.Call, op.Return, op.ClientId, op.Input, op.Output)
			}
			return false, "there is no order of these operations:" + all.String()
		}
	}
	return true, ""
}

// manyHistories runs recorded histories, some at a time, and fails if one is not linear. one is given its own random
// source, and says how it went.
func manyHistories(t *testing.T, count int, model porcupine.Model, one func(*testing.T, *rand.Rand) *recorder) {
	t.Helper()
	base := seeded(t)
	var operations, unknown, done atomic.Int64
	t.Run("", func(t *testing.T) { // returns when all its shards have
		for shard := range shards {
			t.Run("", func(t *testing.T) {
				t.Parallel()
				for n := shard; n < count && !t.Failed(); n += shards {
					r := one(t, rand.New(rand.NewPCG(base, uint64(n))))
					if ok, why := linear(t, model, r.ops); !ok {
						t.Errorf("seed %d, history %d: %s", base, n, why)
					}
					operations.Add(int64(len(r.ops)))
					done.Add(1)
					for _, op := range r.ops {
						if op.Return == math.MaxInt64 {
							unknown.Add(1)
						}
					}
				}
			})
		}
	})
	t.Logf("%d histories, %d operations, of %d of them nobody was told the outcome", done.Load(), operations.Load(), unknown.Load())
	if count >= 40 && unknown.Load() == 0 {
		t.Error("no outcome was unknown")
	}
}

// trouble lets a commit of the store fail in a way that leaves the store unusable: nothing of it is written, or all, or
// all is seen by readers and then lost, as by a failed flush and a power failure. meanwhile starts such readers. What is
// returned makes the file what the next process finds.
func trouble(t testing.TB, s *Store, random *rand.Rand, meanwhile, failed func()) (restore func()) {
	left, lost := 1+random.IntN(60), false
	before := s.path + ".before"
	fail := func() error { // only the writer is here
		if left--; left != 0 {
			return nil
		}
		meanwhile()
		for range 200 {
			runtime.Gosched()
		}
		failed()
		return syscall.EIO
	}
	switch random.IntN(3) {
	case 0:
		s.hooks.beforeCommit = fail
	case 1:
		s.hooks.afterCommit = fail
	case 2:
		s.hooks.beforeCommit = func() error {
			if left == 1 {
				copyFile(t, s.path, before)
			}
			return nil
		}
		s.hooks.afterCommit = func() error {
			err := fail()
			lost = lost || err != nil
			return err
		}
	}
	return func() {
		if lost {
			if err := os.Rename(before, s.path); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// fate tells what an error of Apply means for the history: the rules' own word is an outcome; what is certainly not
// written did not take place; of anything else nobody knows.
func fate(t testing.TB, err error) (happened, unknown bool, rule error) {
	for _, rule := range []error{dedup.ErrUnknownEvent, dedup.ErrUnknownAttempt, dedup.ErrAttemptClosed, dedup.ErrReceiptDiffers, dedup.ErrNotAllowed} {
		if errors.Is(err, rule) {
			return true, false, rule
		}
	}
	switch {
	case err == nil:
		return true, false, nil
	case errors.Is(err, dedup.ErrNotWritten):
		return false, false, nil
	case !errors.Is(err, dedup.ErrUnavailable):
		t.Error("an error that is none of the store's:", err)
	}
	return true, true, nil
}

// notRead tells that nothing was read, which must be for a good reason.
func notRead(t testing.TB, err error) bool {
	if err != nil && !errors.Is(err, dedup.ErrUnavailable) && !errors.Is(err, dedup.ErrClosed) && !errors.Is(err, context.Canceled) {
		t.Error("lookup:", err)
	}
	return err != nil
}

// checked verifies the file and removes it: there are many.
func checked(t testing.TB, s *Store) {
	t.Helper()
	verify(t, s)
	if err := os.RemoveAll(filepath.Dir(s.path)); err != nil {
		t.Error(err)
	}
}

// newFile is the path of a store that does not exist yet.
func newFile(t testing.TB) string { return filepath.Join(t.TempDir(), "receipts.db") }

func mustOpen(t testing.TB, path string) *Store {
	t.Helper()
	s, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func sameReceipt(a, b *dedup.Receipt) bool {
	return a == b || a != nil && b != nil && reflect.DeepEqual(*a, *b)
}
