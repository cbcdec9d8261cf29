package bolt

import (
	"flag"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/einlass/einlass/dedup"
	"github.com/einlass/einlass/dedup/deduptest"
)

var (
	operations = flag.Int("operations", 100_000, "how many TestALongRandomHistoryIsThatOfTheModel takes through the store")
	seed       = flag.Uint64("seed", 0, "of the random histories; 0: another one every time")
)

// seeded is the seed of a random test, printed so that a failure can be run again.
func seeded(t testing.TB) uint64 {
	t.Helper()
	s := *seed
	for s == 0 {
		s = rand.Uint64()
	}
	t.Logf("to run this again: -run '^%s$' -seed %d", t.Name(), s)
	return s
}

// withoutSync opens the store at path so that nothing waits for the disk. Whether the rules are kept does not hang on
// it; that what is acknowledged outlives a crash is proved elsewhere (TestNothingAcknowledgedIsLostByAKill).
func withoutSync(t testing.TB, path string) *Store {
	t.Helper()
	s, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.db.NoSync = true
	s.db.NoGrowSync = true
	return s
}

// reopened closes a store and opens it again by open.
func reopened(t testing.TB, open func(testing.TB, string) *Store) func(dedup.Store) dedup.Store {
	return func(old dedup.Store) dedup.Store {
		if err := old.Close(); err != nil {
			t.Fatal(err)
		}
		return open(t, old.(*Store).path)
	}
}

func TestALongRandomHistoryIsThatOfTheModel(t *testing.T) {
	t.Parallel()
	s := withoutSync(t, filepath.Join(t.TempDir(), "receipts.db"))
	last := deduptest.Simulate(t, seeded(t), *operations, s, reopened(t, withoutSync))
	verify(t, last.(*Store))
}

func TestAShortRandomHistoryIsThatOfTheModelOnTheDisk(t *testing.T) {
	t.Parallel()
	s := opened(t)
	last := deduptest.Simulate(t, seeded(t), 1000, s, reopened(t, func(t testing.TB, path string) *Store {
		again, err := Open(path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		return again
	}))
	verify(t, last.(*Store))
}
