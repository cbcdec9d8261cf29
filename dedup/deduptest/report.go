package deduptest

import (
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/einlass/einlass/dedup"
)

// twoAttempts is an event with an attempt whose lease is over and a newer one that runs.
func twoAttempts(b *bench) (first, second dedup.Receipt) {
	b.Helper()
	first = b.apply(dedup.Forward, Reserve(Event("e", "x"), 0, dedup.Redeliver))
	return first, b.apply(dedup.Forward, Reserve(Event("e", "x"), Lease, dedup.Redeliver))
}

// otherwise is a transition's answer changed.
func otherwise(c dedup.Confirm) dedup.Confirm {
	c.Answer.Status = 299
	return c
}

func confirmed(_ *testing.T, b *bench) { // T3, T6
	r := b.apply(dedup.Forward, Reserve(Event("e", "x"), 0, dedup.Redeliver))
	done := b.apply(dedup.Replay, Confirm(r, r.Attempt, dedup.Commit, time.Second))
	b.state(done, dedup.StateCommitted, 1)
	if !done.Answer.Equal(Answer(r.Attempt)) || !done.AnsweredBy(r.Attempt) || done.Learned != dedup.LearnedCallback ||
		!done.Lease.IsZero() || !done.Updated.Equal(Start.Add(time.Second)) {
		b.Fatalf("%+v", done)
	}
	late := b.apply(dedup.Replay, Finish(r.Key, r.Attempt, dedup.Reject, time.Minute)) // the app's own HTTP answer
	if !reflect.DeepEqual(late, done) {
		b.Fatalf("the receipt has changed: %+v", late)
	}

	r = b.apply(dedup.Forward, Reserve(Event("f", "x"), 0, dedup.Redeliver))
	b.state(b.apply(dedup.Replay, Confirm(r, r.Attempt, dedup.Reject, time.Second)), dedup.StateRejected, 1)
}

func confirmedLate(_ *testing.T, b *bench) { // rule 1
	first, second := twoAttempts(b)
	done := b.apply(dedup.Replay, Confirm(second, first.Attempt, dedup.Commit, 1000*time.Hour))
	if !done.AnsweredBy(first.Attempt) || !done.Answer.Equal(Answer(first.Attempt)) {
		b.Fatalf("%+v", done)
	}

	open := b.apply(dedup.Forward, Reserve(Event("open", "x"), 0, dedup.Redeliver))
	b.apply(dedup.Again, Finish(open.Key, open.Attempt, dedup.Abort, time.Second))
	b.state(b.apply(dedup.Replay, Confirm(open, open.Attempt, dedup.Commit, time.Hour)), dedup.StateCommitted, 1)

	held := b.apply(dedup.Forward, Reserve(Event("held", "x"), 0, dedup.Redeliver))
	b.apply(dedup.Held, dedup.Hold{Key: held.Key, At: Start.Add(Lease)})
	b.apply(dedup.Held, Confirm(held, held.Attempt, dedup.Abort, time.Hour))
	b.state(b.apply(dedup.Replay, Confirm(held, held.Attempt, dedup.Commit, time.Hour)), dedup.StateCommitted, 1)
}

func confirmedAgain(_ *testing.T, b *bench) { // I4
	first, second := twoAttempts(b)
	commit := Confirm(second, second.Attempt, dedup.Commit, Lease)
	done := b.apply(dedup.Replay, commit)
	again := commit
	again.At = Start.Add(time.Hour)
	again.Answer.Header = again.Answer.Header[:1] // a callback can say no other header
	older := Confirm(second, first.Attempt, dedup.Commit, time.Hour)
	older.Answer = again.Answer // it has found the other one's row
	for _, same := range []dedup.Confirm{commit, again, older} {
		if r := b.apply(dedup.Replay, same); !reflect.DeepEqual(r, done) {
			b.Fatalf("the same again has written %+v", r)
		}
	}
	body, kind := commit, commit
	body.Answer.Body = append([]byte("not "), body.Answer.Body...)
	kind.Answer.Header = []dedup.Field{{Name: "Content-Type", Value: "text/html"}}
	for _, differs := range []dedup.Confirm{
		otherwise(commit), body, kind,
		Confirm(second, first.Attempt, dedup.Commit, Lease), // its own answer
		Confirm(second, second.Attempt, dedup.Reject, Lease),
		Confirm(second, second.Attempt, dedup.Abort, Lease), // of the attempt that was answered
	} {
		b.refuses(dedup.ErrReceiptDiffers, differs)
	}
	b.apply(dedup.Replay, Confirm(second, first.Attempt, dedup.Abort, Lease)) // it says nothing of the receipt
	unknown := commit
	unknown.Token[0] ^= 1
	b.refuses(dedup.ErrUnknownAttempt, unknown)
	b.refuses(dedup.ErrUnknownAttempt, dedup.Confirm{Key: commit.Key, Outcome: dedup.Abort, At: Start})
	unknown = commit
	unknown.Key.Event = "f"
	b.refuses(dedup.ErrUnknownEvent, unknown)
}

func confirmedAborted(_ *testing.T, b *bench) { // T4
	first, second := twoAttempts(b)
	b.apply(dedup.InDoubt, Confirm(second, first.Attempt, dedup.Abort, Lease)) // it says nothing of the newest
	open := b.apply(dedup.Again, Confirm(second, second.Attempt, dedup.Abort, Lease))
	b.state(open, dedup.StateOpen, 2)
	if !open.Lease.IsZero() || open.Answer != nil || !open.InDoubtBefore || open.Closed != 0 {
		b.Fatalf("%+v", open)
	}
	again := b.apply(dedup.Again, Confirm(second, second.Attempt, dedup.Abort, time.Hour))
	if !reflect.DeepEqual(again, open) {
		b.Fatalf("the same again has written %+v", again)
	}
	b.apply(dedup.Replay, Confirm(second, second.Attempt, dedup.Commit, time.Hour)) // it was said carelessly
}

func absent(_ *testing.T, b *bench) { // T4, rule 1
	b.refuses(dedup.ErrUnknownEvent, Absent(Event("e", "x").Key, 1, false, 0))
	first, second := twoAttempts(b)
	b.refuses(dedup.ErrUnknownAttempt, Absent(first.Key, second.Attempt+1, true, Lease))
	b.refuses(dedup.ErrUnknownAttempt, Absent(first.Key, 0, true, Lease))
	b.apply(dedup.InDoubt, Absent(first.Key, first.Attempt, false, Lease))
	open := b.apply(dedup.Again, Absent(first.Key, second.Attempt, false, Lease))
	b.state(open, dedup.StateOpen, 2)
	if open.Closed != 0 || !open.InDoubtBefore || !open.Lease.IsZero() || len(open.Tokens) != 2 {
		b.Fatalf("%+v", open)
	}
	b.apply(dedup.Again, Absent(first.Key, second.Attempt, false, time.Hour))
	next := b.apply(dedup.Forward, Reserve(Event("e", "x"), time.Hour, dedup.Ask))
	if !next.InDoubtBefore || next.Attempts != 3 {
		b.Fatalf("%+v", next)
	}
	done := b.apply(dedup.Replay, Confirm(next, second.Attempt, dedup.Commit, time.Hour)) // C6 of the protocol notes
	if !done.AnsweredBy(second.Attempt) {
		b.Fatalf("%+v", done)
	}
	b.apply(dedup.Replay, Absent(first.Key, next.Attempt, true, time.Hour))
}

func fenced(_ *testing.T, b *bench) { // T5, I9
	_, second := twoAttempts(b)
	open := b.apply(dedup.Again, Absent(second.Key, second.Attempt, true, Lease))
	b.state(open, dedup.StateOpen, 2)
	if open.Closed != second.Attempt || open.InDoubtBefore || !open.Lease.IsZero() || open.MayConfirm() {
		b.Fatalf("%+v", open)
	}
	for _, token := range second.Tokens { // the earlier one is closed with it
		b.refuses(dedup.ErrAttemptClosed, Confirm(second, token.Attempt, dedup.Commit, time.Hour))
		b.refuses(dedup.ErrAttemptClosed, Confirm(second, token.Attempt, dedup.Reject, time.Hour))
		b.refuses(dedup.ErrAttemptClosed, Finish(second.Key, token.Attempt, dedup.Commit, time.Hour))
		b.apply(dedup.Again, Confirm(second, token.Attempt, dedup.Abort, time.Hour)) // that is no news
		b.apply(dedup.Again, Absent(second.Key, token.Attempt, true, time.Hour))
		b.apply(dedup.Again, Absent(second.Key, token.Attempt, false, time.Hour))
	}
	third := b.apply(dedup.Forward, Reserve(Event("e", "x"), time.Hour, dedup.Ask))
	if third.InDoubtBefore || third.Closed != second.Attempt {
		b.Fatalf("%+v", third)
	}
	b.apply(dedup.InDoubt, Confirm(third, second.Attempt, dedup.Abort, time.Hour))
	b.apply(dedup.Replay, Confirm(third, third.Attempt, dedup.Commit, time.Hour))
	b.refuses(dedup.ErrAttemptClosed, Confirm(third, second.Attempt, dedup.Commit, time.Hour)) // more than a receipt that differs
	row := Confirm(third, second.Attempt, dedup.Commit, time.Hour)
	row.Answer = Answer(third.Attempt)
	b.apply(dedup.Replay, row) // it has found the third one's row
}

func fencedOlder(_ *testing.T, b *bench) {
	first, second := twoAttempts(b)
	r := b.apply(dedup.InDoubt, Absent(first.Key, first.Attempt, true, Lease))
	b.state(r, dedup.StateReserved, 2)
	if r.Closed != first.Attempt || !r.Lease.Equal(second.Lease) || !r.InDoubtBefore {
		b.Fatalf("%+v", r)
	}
	b.refuses(dedup.ErrAttemptClosed, Confirm(second, first.Attempt, dedup.Commit, Lease))
	done := b.apply(dedup.Replay, Confirm(second, second.Attempt, dedup.Commit, Lease))
	if !done.AnsweredBy(second.Attempt) {
		b.Fatalf("%+v", done)
	}
}

func extended(_ *testing.T, b *bench) {
	b.refuses(dedup.ErrUnknownEvent, Extend(Event("e", "x").Key, 1, 0))
	first, second := twoAttempts(b)
	b.refuses(dedup.ErrUnknownAttempt, Extend(first.Key, second.Attempt+1, time.Hour))
	longer := b.apply(dedup.InDoubt, Extend(first.Key, second.Attempt, Lease+time.Second))
	if !longer.Lease.Equal(Start.Add(2*Lease+time.Second)) || longer.State != dedup.StateReserved || longer.Attempts != 2 {
		b.Fatalf("%+v", longer)
	}
	for _, nothing := range []dedup.Transition{
		Extend(first.Key, second.Attempt, Lease), Extend(first.Key, second.Attempt, Lease+time.Second),
		Extend(first.Key, first.Attempt, time.Hour), dedup.Extend{Key: first.Key, Attempt: second.Attempt, At: Start.Add(Lease)},
	} {
		if r := b.apply(dedup.InDoubt, nothing); !reflect.DeepEqual(r, longer) {
			b.Fatalf("%+v has written %+v", nothing, r)
		}
	}
	b.apply(dedup.InDoubt, Reserve(Event("e", "x"), 2*Lease+time.Second-time.Millisecond, dedup.Redeliver))
	third := b.apply(dedup.Forward, Reserve(Event("e", "x"), 2*Lease+time.Second, dedup.Redeliver))
	b.apply(dedup.Again, Confirm(third, third.Attempt, dedup.Abort, 3*Lease))
	b.apply(dedup.Again, Extend(first.Key, third.Attempt, time.Hour)) // an open event stays open
	b.apply(dedup.Replay, Confirm(third, third.Attempt, dedup.Commit, 3*Lease))
	b.apply(dedup.Replay, Extend(first.Key, third.Attempt, time.Hour))
}

func asked(_ *testing.T, b *bench) { // policy "ask"
	r := b.apply(dedup.Forward, Reserve(Event("e", "x"), 0, dedup.Ask))
	for _, after := range []time.Duration{0, Lease, 1000 * time.Hour} {
		if still := b.apply(dedup.InDoubt, Reserve(Event("e", "x"), after, dedup.Ask)); !reflect.DeepEqual(still, r) {
			b.Fatalf("%v later: %+v", after, still)
		}
	}
	b.apply(dedup.Again, Absent(r.Key, r.Attempt, false, Lease))
	b.state(b.apply(dedup.Forward, Reserve(Event("e", "x"), 2*Lease, dedup.Ask)), dedup.StateReserved, 2)
}

func confirmedByMany(_ *testing.T, b *bench) {
	const many = 32
	r := b.apply(dedup.Forward, Reserve(Event("e", "x"), 0, dedup.Redeliver))
	for i := range many - 1 {
		r = b.apply(dedup.Forward, Reserve(Event("e", "x"), time.Duration(i+1)*Lease, dedup.Redeliver))
	}
	changed, refused := make(chan uint64, many), make(chan dedup.Receipt, many)
	var group sync.WaitGroup
	for i := range many {
		group.Go(func() {
			attempt := r.Tokens[i].Attempt
			switch res, err := b.store.Apply(b.Context(), Confirm(r, attempt, dedup.Commit, time.Hour)); {
			case err == nil && res.Changed:
				changed <- attempt
			case err != nil:
				refused <- res.Receipt
			default:
				b.Errorf("attempt %d: %v", attempt, res.Kind)
			}
		})
	}
	group.Wait()
	if len(changed) != 1 || len(refused) != many-1 {
		b.Fatalf("%d are the receipt, %d refused", len(changed), len(refused))
	}
	stands, _ := b.look(Event("e", "x"))
	if winner := <-changed; !stands.AnsweredBy(winner) || !stands.Answer.Equal(Answer(winner)) {
		b.Fatalf("attempt %d has won, %+v stands", winner, stands)
	}
	for range many - 1 {
		if told := <-refused; !reflect.DeepEqual(told, stands) {
			b.Fatalf("told %+v, %+v stands", told, stands)
		}
	}
}

func seed(_ *testing.T, b *bench) {
	first := b.store.Seed()
	if first == (dedup.Seed{}) {
		b.Fatal("no seed")
	}
	for i := range 3 {
		b.apply(dedup.Forward, Reserve(Event(fmt.Sprint(i), "x"), 0, dedup.Redeliver))
	}
	if b.store.Seed() != first {
		b.Fatal("another one")
	}
}
