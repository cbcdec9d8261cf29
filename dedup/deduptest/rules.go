package deduptest

import (
	"crypto/sha256"
	"testing"
	"time"

	"github.com/einlass/einlass/dedup"
)

func firstDelivery(_ *testing.T, b *bench) { // T1
	r := b.apply(dedup.Forward, Reserve(Event("e", "x"), 0, dedup.Redeliver))
	b.state(r, dedup.StateReserved, 1)
	if r.Attempt != uint64(Start.UnixMilli()) || !r.Lease.Equal(Start.Add(Lease)) || !r.FirstSeen.Equal(Start) ||
		r.Type != "order.created" || r.Digest != Event("e", "x").Digest || len(r.Tokens) != 1 || r.InDoubtBefore {
		b.Fatalf("%+v", r)
	}
}

func committed(_ *testing.T, b *bench) { // T3
	r := b.apply(dedup.Forward, Reserve(Event("e", "x"), 0, dedup.Redeliver))
	done := b.apply(dedup.Replay, Finish(r.Key, r.Attempt, dedup.Commit, time.Second))
	b.state(done, dedup.StateCommitted, 1)
	if !done.Answer.Equal(Answer(r.Attempt)) || !done.AnsweredBy(r.Attempt) || done.Learned != dedup.LearnedResponse {
		b.Fatalf("%+v", done)
	}
	for _, outcome := range []dedup.Outcome{dedup.Commit, dedup.Reject, dedup.Abort} { // I4
		again := Finish(r.Key, r.Attempt, outcome, time.Hour)
		again.Answer.Status = 500
		b.state(b.apply(dedup.Replay, again), dedup.StateCommitted, 1)
	}
	again := b.apply(dedup.Replay, Reserve(Event("e", "x"), 1000*time.Hour, dedup.Redeliver))
	if !again.Answer.Equal(Answer(r.Attempt)) {
		b.Fatalf("%+v", again.Answer)
	}
}

func rejected(_ *testing.T, b *bench) { // T6
	r := b.apply(dedup.Forward, Reserve(Event("e", "x"), 0, dedup.Redeliver))
	done := b.apply(dedup.Replay, Finish(r.Key, r.Attempt, dedup.Reject, time.Second))
	b.state(done, dedup.StateRejected, 1)
	b.state(b.apply(dedup.Replay, Finish(r.Key, r.Attempt, dedup.Commit, time.Second)), dedup.StateRejected, 1)
}

func aborted(_ *testing.T, b *bench) { // T4, T2
	r := b.apply(dedup.Forward, Reserve(Event("e", "x"), 0, dedup.Redeliver))
	open := b.apply(dedup.Again, Finish(r.Key, r.Attempt, dedup.Abort, time.Second))
	b.state(open, dedup.StateOpen, 1)
	if !open.Lease.IsZero() || open.Answer != nil || len(open.Tokens) != 1 {
		b.Fatalf("%+v", open)
	}
	next := b.apply(dedup.Forward, Reserve(Event("e", "x"), 2*time.Second, dedup.Redeliver))
	b.state(next, dedup.StateReserved, 2)
	if next.InDoubtBefore || next.Attempt <= r.Attempt || len(next.Tokens) != 2 {
		b.Fatalf("%+v", next)
	}
}

func inDoubt(_ *testing.T, b *bench) { // T7
	first := b.apply(dedup.Forward, Reserve(Event("e", "x"), 0, dedup.Redeliver))
	b.apply(dedup.InDoubt, Reserve(Event("e", "x"), Lease-time.Millisecond, dedup.Redeliver))
	r := b.apply(dedup.Forward, Reserve(Event("e", "x"), Lease, dedup.Redeliver))
	b.state(r, dedup.StateReserved, 2)
	if !r.InDoubtBefore || r.Attempt <= first.Attempt {
		b.Fatalf("%+v", r)
	}
}

func held(_ *testing.T, b *bench) { // T8
	r := b.apply(dedup.Forward, Reserve(Event("e", "x"), 0, dedup.HoldForPerson))
	b.refuses(dedup.ErrNotAllowed, dedup.Hold{Key: r.Key, At: Start})
	b.apply(dedup.InDoubt, Reserve(Event("e", "x"), time.Second, dedup.HoldForPerson))
	b.state(b.apply(dedup.Held, Reserve(Event("e", "x"), Lease, dedup.HoldForPerson)), dedup.StateHeld, 1)
	b.apply(dedup.Held, Reserve(Event("e", "x"), time.Hour, dedup.Redeliver))
	b.apply(dedup.Held, dedup.Hold{Key: r.Key, At: Start})
	b.apply(dedup.Held, Finish(r.Key, r.Attempt, dedup.Abort, time.Hour))
	b.state(b.apply(dedup.Replay, Finish(r.Key, r.Attempt, dedup.Commit, time.Hour)), dedup.StateCommitted, 1)

	r = b.apply(dedup.Forward, Reserve(Event("f", "x"), 0, dedup.Redeliver))
	b.state(b.apply(dedup.Held, dedup.Hold{Key: r.Key, At: Start.Add(Lease)}), dedup.StateHeld, 1)
}

func olderAttempt(_ *testing.T, b *bench) { // rule 1
	first := b.apply(dedup.Forward, Reserve(Event("e", "x"), 0, dedup.Redeliver))
	second := b.apply(dedup.Forward, Reserve(Event("e", "x"), Lease, dedup.Redeliver))
	b.state(b.apply(dedup.InDoubt, Finish(first.Key, first.Attempt, dedup.Abort, Lease)), dedup.StateReserved, 2)
	done := b.apply(dedup.Replay, Finish(first.Key, first.Attempt, dedup.Commit, 2*Lease))
	if !done.AnsweredBy(first.Attempt) || done.AnsweredBy(second.Attempt) {
		b.Fatalf("%+v", done)
	}
	late := b.apply(dedup.Replay, Finish(first.Key, second.Attempt, dedup.Commit, 2*Lease))
	if !late.Answer.Equal(Answer(first.Attempt)) {
		b.Fatalf("the second answer stands: %+v", late)
	}
}

func conflict(_ *testing.T, b *bench) {
	r := b.apply(dedup.Forward, Reserve(Event("e", "x"), 0, dedup.Redeliver))
	other := Event("e", "y")
	other.Guard = true
	b.apply(dedup.Conflict, Reserve(other, time.Hour, dedup.Redeliver))
	b.apply(dedup.Again, Finish(r.Key, r.Attempt, dedup.Abort, 0))
	b.apply(dedup.Conflict, Reserve(other, time.Hour, dedup.Redeliver))
	r = b.apply(dedup.Forward, Reserve(Event("e", "x"), time.Hour, dedup.Redeliver))
	b.apply(dedup.Replay, Finish(r.Key, r.Attempt, dedup.Commit, time.Hour))
	b.apply(dedup.Conflict, Reserve(other, time.Hour, dedup.Redeliver))
	b.apply(dedup.Forward, Reserve(Guarded("f", "y"), time.Hour, dedup.Redeliver)) // a conflict leaves no alias
}

func sameContent(_ *testing.T, b *bench) {
	json := Event("e", `{"a":1,"sent":1}`)
	json.Fingerprint = sha256.Sum256([]byte(`{"a":1}`))
	b.apply(dedup.Forward, Reserve(json, 0, dedup.Redeliver))
	again := Event("e", `{"a":1,"sent":2}`)
	b.apply(dedup.Conflict, Reserve(again, time.Second, dedup.Redeliver))
	again.Fingerprint = json.Fingerprint
	b.apply(dedup.InDoubt, Reserve(again, time.Second, dedup.Redeliver))
	bytes := Event("e", `{"a":1,"sent":1}`) // equal bytes are equal, however they are compared
	bytes.Fingerprint = dedup.Digest{}
	b.apply(dedup.InDoubt, Reserve(bytes, time.Second, dedup.Redeliver))
	byID := Event("e", "anything")
	byID.ByID = true
	b.apply(dedup.InDoubt, Reserve(byID, time.Second, dedup.Redeliver))
}

func guard(_ *testing.T, b *bench) {
	first := b.apply(dedup.Forward, Reserve(Guarded("e", "x"), 0, dedup.Redeliver))
	if r := b.apply(dedup.InDoubt, Reserve(Guarded("f", "x"), time.Second, dedup.Redeliver)); r.Event != "e" {
		b.Fatalf("%+v", r)
	}
	if r, found := b.look(Guarded("f", "x")); !found || r.Event != "e" {
		b.Fatalf("lookup: %t, %+v", found, r)
	}
	if _, found := b.look(Event("f", "x")); found {
		b.Fatal("without the guard the id is known")
	}
	elsewhere := Guarded("f", "x")
	elsewhere.Source = "another"
	if _, found := b.look(elsewhere); found {
		b.Fatal("the guard reaches another source")
	}
	b.apply(dedup.Again, Finish(first.Key, first.Attempt, dedup.Abort, time.Second))
	second := b.apply(dedup.Forward, Reserve(Guarded("f", "x"), 2*time.Second, dedup.Redeliver))
	b.state(second, dedup.StateReserved, 2)
	if second.Event != "e" {
		b.Fatalf("%+v", second)
	}
	b.apply(dedup.Replay, Finish(second.Key, second.Attempt, dedup.Commit, 3*time.Second))
	b.apply(dedup.Replay, Reserve(Guarded("g", "x"), time.Hour, dedup.Redeliver))
	b.apply(dedup.Conflict, Reserve(Guarded("e", "y"), time.Hour, dedup.Redeliver)) // a known id is itself
}

func guardLater(_ *testing.T, b *bench) {
	r := b.apply(dedup.Forward, Reserve(Event("e", "x"), 0, dedup.Redeliver)) // the guard was off
	b.apply(dedup.Again, Finish(r.Key, r.Attempt, dedup.Abort, 0))
	again := Guarded("e", "x again")
	again.Fingerprint = r.Fingerprint
	b.apply(dedup.Forward, Reserve(again, time.Second, dedup.Redeliver))
	again.Event = "f"
	if r := b.apply(dedup.InDoubt, Reserve(again, time.Second, dedup.Redeliver)); r.Event != "e" {
		b.Fatalf("%+v", r)
	}
}

func noGuard(_ *testing.T, b *bench) {
	b.apply(dedup.Forward, Reserve(Event("e", "x"), 0, dedup.Redeliver))
	b.apply(dedup.Forward, Reserve(Event("f", "x"), 0, dedup.Redeliver))
	b.apply(dedup.Forward, Reserve(Guarded("g", "x"), 0, dedup.Redeliver)) // e and f left no trace for the guard
}

func refused(_ *testing.T, b *bench) {
	key := Event("e", "x").Key
	b.refuses(dedup.ErrUnknownEvent, Finish(key, 1, dedup.Commit, 0))
	b.refuses(dedup.ErrUnknownEvent, Finish(key, 1, dedup.Abort, 0))
	b.refuses(dedup.ErrUnknownEvent, dedup.Hold{Key: key, At: Start})
	r := b.apply(dedup.Forward, Reserve(Event("e", "x"), 0, dedup.Redeliver))
	b.refuses(dedup.ErrUnknownAttempt, Finish(key, r.Attempt+1, dedup.Commit, 0))
	b.refuses(dedup.ErrUnknownAttempt, Finish(key, 0, dedup.Commit, 0))
	b.refuses(dedup.ErrNotAllowed, Finish(key, r.Attempt, 9, 0))
	b.apply(dedup.Replay, Finish(key, r.Attempt, dedup.Commit, 0))
	b.refuses(dedup.ErrNotAllowed, dedup.Hold{Key: key, At: Start.Add(time.Hour)})
}
