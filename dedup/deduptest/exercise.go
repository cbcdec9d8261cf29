package deduptest

import (
	"errors"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/einlass/einlass/dedup"
)

// Exercise runs the conformance suite. open returns a new, empty store and closes it when its test ends.
func Exercise(t *testing.T, open func(*testing.T) dedup.Store) {
	for name, test := range map[string]func(*testing.T, *bench){
		"an unknown event is not found":                        unknown,
		"a first delivery is reserved":                         firstDelivery,
		"a committed event is replayed for ever":               committed,
		"a rejected event is replayed for ever":                rejected,
		"an aborted event is open for the next attempt":        aborted,
		"a reservation is in doubt until its lease is over":    inDoubt,
		"a reservation whose lease is over may be held":        held,
		"an older attempt may still commit, not abort":         olderAttempt,
		"other content under a known id is a conflict":         conflict,
		"equal fingerprints and compare by id are no conflict": sameContent,
		"the guard knows content under another id":             guard,
		"the guard follows later content of an event":          guardLater,
		"without the guard equal content is another event":     noGuard,
		"what the rules refuse changes nothing":                refused,
		"one of many concurrent reservations is the attempt":   concurrent,
		"concurrent events do not disturb each other":          manyEvents,
		"what a store returns is the caller's":                 aliasing,
		"the clock may be turned back":                         clockBack,
		"counts follow the receipts":                           statistics,
		"a closed store says so":                               closed,
		"a confirmation is the receipt":                        confirmed,
		"a confirmation counts however late it comes":          confirmedLate,
		"the receipt that stands is confirmed, no other":       confirmedAgain,
		"what the app aborts is open":                          confirmedAborted,
		"an absent event is open, its attempt may confirm":     absent,
		"a fenced attempt is closed for good":                  fenced,
		"an older attempt is fenced, the newest goes on":       fencedOlder,
		"a lease is extended, never shortened":                 extended,
		"an event is in doubt until the app has said":          asked,
		"one of many concurrent confirmations is the receipt":  confirmedByMany,
		"every undecided event is found, none that is final":   undecided,
		"the undecided are read until the context ends":        undecidedEnds,
		"what is undecided may be written while it is read":    undecidedWritten,
		"what the undecided are is the caller's":               undecidedAliasing,
		"the seed stays the same":                              seed,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, &bench{t, open(t)})
		})
	}
	t.Run("no two stores have the same seed", func(t *testing.T) {
		t.Parallel()
		if one, other := open(t).Seed(), open(t).Seed(); one == other {
			t.Fatal("the same")
		}
	})
}

// bench is a store and the words to say what is expected of it.
type bench struct {
	*testing.T
	store dedup.Store
}

// apply applies a transition that must succeed, and checks that it is what is stored.
func (b *bench) apply(want dedup.Kind, t dedup.Transition) dedup.Receipt {
	b.Helper()
	res, err := b.store.Apply(b.Context(), t)
	if err != nil {
		b.Fatalf("%T: %v", t, err)
	}
	if res.Kind != want {
		b.Fatalf("%T: got %v, want %v", t, res.Kind, want)
	}
	if stored, found := b.look(dedup.Identity{Key: res.Receipt.Key}); !found || !reflect.DeepEqual(stored, res.Receipt) {
		b.Fatalf("%T: returned\n%+v\nstored (%t)\n%+v", t, res.Receipt, found, stored)
	}
	return res.Receipt
}

func (b *bench) look(id dedup.Identity) (dedup.Receipt, bool) {
	b.Helper()
	r, found, err := b.store.Lookup(b.Context(), id)
	if err != nil {
		b.Fatalf("lookup: %v", err)
	}
	return r, found
}

func (b *bench) state(r dedup.Receipt, want dedup.State, attempts uint32) {
	b.Helper()
	if r.State != want || r.Attempts != attempts {
		b.Fatalf("got %v after %d attempts, want %v after %d", r.State, r.Attempts, want, attempts)
	}
}

// refuses applies a transition that the rules refuse: it changes nothing, and the result holds the receipt that stands.
func (b *bench) refuses(want error, t dedup.Transition) {
	b.Helper()
	key := dedup.Identity{Key: t.Of().Key}
	before, found := b.look(key)
	res, err := b.store.Apply(b.Context(), t)
	if !errors.Is(err, want) {
		b.Fatalf("%T: got error %v, want %v", t, err, want)
	}
	if res.Changed || !reflect.DeepEqual(res.Receipt, before) {
		b.Fatalf("%T was refused with\n%+v, and not with the receipt that stands\n%+v", t, res, before)
	}
	if after, still := b.look(key); found != still || !reflect.DeepEqual(before, after) {
		b.Fatalf("%T was refused and changed\n%+v to\n%+v", t, before, after)
	}
}

func unknown(_ *testing.T, b *bench) {
	if _, found := b.look(Guarded("e", "x")); found {
		b.Fatal("found")
	}
}

func aliasing(_ *testing.T, b *bench) {
	r := b.apply(dedup.Forward, Reserve(Event("e", "x"), 0, dedup.Redeliver))
	answer := Answer(r.Attempt)
	f := Finish(r.Key, r.Attempt, dedup.Commit, time.Second)
	f.Answer = answer
	got := b.apply(dedup.Replay, f)
	answer.Body[0] ^= 1
	got.Answer.Body[1] ^= 1
	got.Answer.Header[0].Value = "changed"
	got.Tokens[0].Attempt = 0
	got, _ = b.look(Event("e", "x"))
	if !got.Answer.Equal(Answer(r.Attempt)) || got.Tokens[0].Attempt != r.Attempt {
		b.Fatalf("the stored receipt has changed: %+v", got)
	}
}

func clockBack(_ *testing.T, b *bench) {
	first := b.apply(dedup.Forward, Reserve(Event("e", "x"), time.Hour, dedup.Redeliver))
	b.apply(dedup.Again, Finish(first.Key, first.Attempt, dedup.Abort, time.Hour))
	second := b.apply(dedup.Forward, Reserve(Event("e", "x"), 0, dedup.Redeliver))
	if second.Attempt != first.Attempt+1 {
		b.Fatalf("attempt %d after %d", second.Attempt, first.Attempt)
	}
}

func statistics(_ *testing.T, b *bench) {
	one := b.apply(dedup.Forward, Reserve(Event("1", "x"), 0, dedup.Redeliver))
	b.apply(dedup.Forward, Reserve(Event("2", "x"), 0, dedup.Redeliver))
	b.apply(dedup.Replay, Finish(one.Key, one.Attempt, dedup.Commit, 0))
	b.apply(dedup.Replay, Reserve(Event("1", "x"), 0, dedup.Redeliver))
	s := b.store.Stats()
	if s.Receipts[dedup.StateReserved] != 1 || s.Receipts[dedup.StateCommitted] != 1 || s.Transitions != 4 || s.Commits != 3 {
		b.Fatalf("%+v", s)
	}
}

func closed(_ *testing.T, b *bench) {
	if err := b.store.Close(); err != nil {
		b.Fatal(err)
	}
	if err := b.store.Close(); err != nil {
		b.Fatalf("second close: %v", err)
	}
	if _, _, err := b.store.Lookup(b.Context(), Event("e", "x")); !errors.Is(err, dedup.ErrClosed) {
		b.Fatalf("lookup: %v", err)
	}
	_, err := b.store.Apply(b.Context(), Reserve(Event("e", "x"), 0, dedup.Redeliver))
	if !errors.Is(err, dedup.ErrClosed) || !errors.Is(err, dedup.ErrNotWritten) {
		b.Fatalf("apply: %v", err)
	}
	if found, err := collect(b.store.Undecided(b.Context())); len(found) > 0 || !errors.Is(err, dedup.ErrClosed) {
		b.Fatalf("undecided: %v, %v", found, err)
	}
}

func concurrent(_ *testing.T, b *bench) {
	const many = 64
	kinds := make([]dedup.Kind, many)
	var group sync.WaitGroup
	for i := range many {
		group.Go(func() {
			// Half of them under other ids: the guard has to hold in the same transaction.
			id := Guarded("e", "x")
			if i%2 == 1 {
				id.Event = string(rune('a' + i/2))
			}
			res, err := b.store.Apply(b.Context(), Reserve(id, time.Duration(i), dedup.Redeliver))
			if err != nil {
				b.Errorf("reserve: %v", err)
			}
			kinds[i] = res.Kind
		})
	}
	group.Wait()
	count := map[dedup.Kind]int{}
	for _, k := range kinds {
		count[k]++
	}
	if count[dedup.Forward] != 1 || count[dedup.InDoubt] != many-1 {
		b.Fatalf("%v", count)
	}
}

func manyEvents(_ *testing.T, b *bench) {
	var group sync.WaitGroup
	for i := range 32 {
		group.Go(func() {
			id := Event(string(rune('A'+i)), "x")
			res, err := b.store.Apply(b.Context(), Reserve(id, 0, dedup.Redeliver))
			if err != nil || res.Kind != dedup.Forward {
				b.Errorf("reserve: %v, %v", res.Kind, err)
				return
			}
			res, err = b.store.Apply(b.Context(), Finish(id.Key, res.Receipt.Attempt, dedup.Commit, 0))
			if err != nil || res.Receipt.Key != id.Key || res.Receipt.State != dedup.StateCommitted {
				b.Errorf("commit: %+v, %v", res, err)
			}
		})
	}
	group.Wait()
}
