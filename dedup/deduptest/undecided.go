package deduptest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/einlass/einlass/dedup"
)

// many is more events than any store is expected to read at once.
const many = 700

// collect reads a sequence to its end. After an error, which comes with the zero receipt, there must be nothing.
func collect(all iter.Seq2[dedup.Receipt, error]) (found map[string]dedup.Receipt, err error) {
	found = map[string]dedup.Receipt{}
	for r, e := range all {
		_, twice := found[r.Event]
		switch {
		case err != nil:
			return found, fmt.Errorf("%+v, %w after the error %w", r, e, err)
		case e != nil && !reflect.DeepEqual(r, dedup.Receipt{}):
			return found, fmt.Errorf("%+v with the error %w", r, e)
		case e == nil && twice:
			return found, fmt.Errorf("%q twice", r.Event)
		case e == nil:
			found[r.Event] = r
		}
		err = e
	}
	return found, err
}

// fill reserves many events and lets their attempts end in every way, and returns what is undecided then.
func fill(b *bench) map[string]dedup.Receipt {
	b.Helper()
	var mu sync.Mutex
	want := map[string]dedup.Receipt{}
	var group sync.WaitGroup
	for i := range many {
		group.Go(func() {
			id := Event(fmt.Sprint("evt_", i), "x")
			res, err := b.store.Apply(b.Context(), Reserve(id, 0, dedup.Redeliver))
			if err == nil {
				r := res.Receipt
				end := map[int]dedup.Transition{
					1: Confirm(r, r.Attempt, dedup.Commit, 0), 2: Confirm(r, r.Attempt, dedup.Reject, 0),
					3: Confirm(r, r.Attempt, dedup.Abort, 0), 4: dedup.Hold{Key: r.Key, At: Start.Add(Lease)},
					5: Absent(r.Key, r.Attempt, true, 0), 6: Finish(r.Key, r.Attempt, dedup.Commit, 0),
				}[i%9]
				if end != nil {
					res, err = b.store.Apply(b.Context(), end)
				}
			}
			if err != nil {
				b.Error(err)
			}
			if !res.Receipt.State.Final() {
				mu.Lock()
				defer mu.Unlock()
				want[id.Event] = res.Receipt
			}
		})
	}
	group.Wait()
	return want
}

func undecided(_ *testing.T, b *bench) {
	if found, err := collect(b.store.Undecided(b.Context())); len(found) > 0 || err != nil {
		b.Fatalf("in an empty store: %v, %v", found, err)
	}
	want := fill(b)
	all := b.store.Undecided(b.Context())
	for range 2 { // a sequence may be read more than once
		found, err := collect(all)
		if err != nil {
			b.Fatal(err)
		}
		if len(want) < many/2 || !maps.EqualFunc(found, want, func(a, b dedup.Receipt) bool { return reflect.DeepEqual(a, b) }) {
			b.Fatalf("%d found, %d are undecided", len(found), len(want))
		}
	}
	n := 0
	for _, err := range all { // who has seen enough stops
		if n++; err != nil || n == 3 {
			break
		}
	}
	if n != 3 {
		b.Fatal(n)
	}
}

func undecidedEnds(_ *testing.T, b *bench) {
	want := fill(b)
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	found, err := collect(func(yield func(dedup.Receipt, error) bool) {
		for r, err := range b.store.Undecided(ctx) {
			cancel() // with the first
			if !yield(r, err) {
				return
			}
		}
	})
	if !errors.Is(err, context.Canceled) || len(found) == 0 || len(found) == len(want) {
		b.Fatalf("%d of %d found: %v", len(found), len(want), err)
	}
	if found, err := collect(b.store.Undecided(ctx)); len(found) > 0 || !errors.Is(err, context.Canceled) {
		b.Fatalf("with a context that has ended: %d found, %v", len(found), err)
	}
}

// undecidedWritten commits every event as it is read: reading holds up no write, and no write hides another event.
func undecidedWritten(_ *testing.T, b *bench) {
	want := fill(b)
	read := 0
	for r, err := range b.store.Undecided(b.Context()) {
		if err != nil {
			b.Fatal(err)
		}
		if !reflect.DeepEqual(r, want[r.Event]) {
			b.Fatalf("%+v", r)
		}
		read++
		_, err := b.store.Apply(b.Context(), Confirm(r, r.Attempt, dedup.Commit, time.Hour))
		if closed := r.Closed == r.Attempt; closed != errors.Is(err, dedup.ErrAttemptClosed) || !closed && err != nil {
			b.Fatalf("closed %t: %v", closed, err)
		}
	}
	if read != len(want) {
		b.Fatalf("%d read, %d were undecided", read, len(want))
	}
}

func undecidedAliasing(_ *testing.T, b *bench) {
	r := b.apply(dedup.Forward, Reserve(Event("e", "x"), 0, dedup.Redeliver))
	for found, err := range b.store.Undecided(b.Context()) {
		if err != nil {
			b.Fatal(err)
		}
		found.Tokens[0].Hash[0] ^= 1
	}
	if now, _ := b.look(Event("e", "x")); !reflect.DeepEqual(now, r) {
		b.Fatalf("the stored receipt has changed: %+v", now)
	}
}
