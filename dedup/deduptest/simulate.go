package deduptest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/einlass/einlass/dedup"
)

// Simulate runs a random history against a store and against the memory store and fails at the first difference.
// reopen closes the store and opens it again; it is called in between.
func Simulate(t *testing.T, seed uint64, steps int, store dedup.Store, reopen func(dedup.Store) dedup.Store) dedup.Store {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 0))
	model := dedup.NewMemory()
	after := time.Duration(0)
	for i := range steps {
		if random.IntN(200) == 0 {
			store = reopen(store)
		}
		after += time.Duration(random.Int64N(int64(Lease/3))) - Lease/30
		id := randomIdentity(random)
		known, _, err := model.Lookup(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		tr := randomTransition(random, id, known, after)
		want, wantErr := model.Apply(t.Context(), tr)
		got, gotErr := store.Apply(t.Context(), tr)
		if errors.Unwrap(wantErr) != errors.Unwrap(gotErr) { //nolint:errorlint // the very sentinel is meant
			t.Fatalf("seed %d, step %d, %#v: error %v, the model's %v", seed, i, tr, gotErr, wantErr)
		}
		if gotErr == nil && !reflect.DeepEqual(want, got) {
			t.Fatalf("seed %d, step %d, %#v:\n%+v, the model's\n%+v", seed, i, tr, got, want)
		}
		same(t, fmt.Sprintf("seed %d, step %d", seed, i), model, store, randomIdentity(random))
	}
	store = reopen(store)
	for _, id := range ids {
		for _, body := range bodies {
			same(t, "at the end", model, store, Guarded(id, body))
		}
	}
	if want, got := model.Stats().Receipts, store.Stats().Receipts; want != got {
		t.Fatalf("counts %v, the model's %v", got, want)
	}
	return store
}

var (
	ids    = []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"}
	bodies = []string{"1", "2", "3", "4", "5", "6", "7", "8"}
)

func same(t *testing.T, when string, model, store dedup.Store, id dedup.Identity) {
	t.Helper()
	want, wantFound, err := model.Lookup(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	got, found, err := store.Lookup(t.Context(), id)
	if err != nil || found != wantFound || !reflect.DeepEqual(want, got) {
		t.Fatalf("%s, lookup of %+v: %t, %v\n%+v, the model's %t\n%+v", when, id, found, err, got, wantFound, want)
	}
}

func randomIdentity(random *rand.Rand) dedup.Identity {
	id := Event(ids[random.IntN(len(ids))], bodies[random.IntN(len(bodies))])
	if random.IntN(3) > 0 { // mostly the id's own content, or nothing would ever come to an end
		id = Event(id.Event, bodies[int(id.Event[0])%len(bodies)])
	}
	id.Guard = random.IntN(2) == 0
	id.ByID = random.IntN(8) == 0
	if random.IntN(4) == 0 {
		id.Fingerprint = dedup.Digest{byte(random.IntN(3))}
	}
	return id
}

func randomTransition(random *rand.Rand, id dedup.Identity, known dedup.Receipt, after time.Duration) dedup.Transition {
	switch random.IntN(5) {
	case 0, 1:
		return Reserve(id, after, dedup.InDoubtPolicy(random.IntN(2)))
	case 2:
		return dedup.Hold{Key: id.Key, At: Start.Add(after)}
	}
	attempt := known.Attempt + uint64(random.IntN(3)/2)
	if n := len(known.Tokens); n > 0 && random.IntN(3) == 0 {
		attempt = known.Tokens[random.IntN(n)].Attempt
	}
	outcome := dedup.Abort
	if random.IntN(4) == 0 {
		outcome = dedup.Outcome(1 + random.IntN(2))
	}
	return Finish(id.Key, attempt, outcome, after)
}
