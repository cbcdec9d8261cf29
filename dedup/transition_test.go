package dedup

import (
	"errors"
	"reflect"
	"testing"
	"time"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// receiptIn is an event's receipt after two attempts, the first of them closed.
func receiptIn(state State) Receipt {
	r := Receipt{
		Key: Key{"shop", "e"}, Type: "t", State: state, Digest: Digest{1}, Fingerprint: Digest{1},
		Attempt: 20, Attempts: 2, Closed: 10, Tokens: []AttemptToken{{20, [16]byte{2}}},
		FirstSeen: noon, Updated: noon,
	}
	switch state {
	case StateReserved, StateHeld:
		r.Lease = noon.Add(time.Minute)
	case StateCommitted, StateRejected:
		r.Answer, r.Decided = &Answer{Status: 200}, 20
	}
	return r
}

func TestEveryTransitionFromEveryState(t *testing.T) {
	t.Parallel()
	id := Identity{Key: Key{"shop", "e"}, Digest: Digest{1}}
	other := Identity{Key: Key{"shop", "e"}, Digest: Digest{9}}
	reserve := func(id Identity, after time.Duration, p InDoubtPolicy) Reserve {
		return Reserve{Identity: id, At: noon.Add(after), Lease: time.Minute, InDoubt: p}
	}
	finish := func(attempt uint64, o Outcome) Finish {
		return Finish{Key: id.Key, Attempt: attempt, Outcome: o, Answer: Answer{Status: 201}, At: noon}
	}
	type cell struct {
		next State // 0: refused with err
		kind Kind
		err  error
	}
	no := func(err error) cell { return cell{err: err} }
	// In the order of the states: absent, reserved, open, committed, rejected, held, queued, dead.
	const (
		a, r, o, c, x, h, q, d = StateAbsent, StateReserved, StateOpen, StateCommitted, StateRejected, StateHeld,
			StateQueued, StateDead
	)
	unknownEvent, notAllowed := no(ErrUnknownEvent), no(ErrNotAllowed)
	conflict := [States]cell{{next: r, kind: Forward}, {r, Conflict, nil}, {o, Conflict, nil}, {c, Conflict, nil},
		{x, Conflict, nil}, {h, Conflict, nil}, {q, Conflict, nil}, {d, Conflict, nil}}
	final := [2]cell{{c, Replay, nil}, {x, Replay, nil}}
	for name, row := range map[string]struct {
		transition Transition
		want       [States]cell
	}{
		"reserve within the lease": {reserve(id, 0, Redeliver),
			[States]cell{{r, Forward, nil}, {r, InDoubt, nil}, {r, Forward, nil}, final[0], final[1], {h, Held, nil}, notAllowed, notAllowed}},
		"reserve after the lease, redeliver": {reserve(id, time.Minute, Redeliver),
			[States]cell{{r, Forward, nil}, {r, Forward, nil}, {r, Forward, nil}, final[0], final[1], {h, Held, nil}, notAllowed, notAllowed}},
		"reserve after the lease, hold": {reserve(id, time.Minute, HoldForPerson),
			[States]cell{{r, Forward, nil}, {h, Held, nil}, {r, Forward, nil}, final[0], final[1], {h, Held, nil}, notAllowed, notAllowed}},
		"reserve after the lease, unknown policy": {reserve(id, time.Minute, 99),
			[States]cell{{r, Forward, nil}, {h, Held, nil}, {r, Forward, nil}, final[0], final[1], {h, Held, nil}, notAllowed, notAllowed}},
		"reserve other content": {reserve(other, time.Hour, Redeliver), conflict},
		"commit the newest": {finish(20, Commit),
			[States]cell{unknownEvent, {c, Replay, nil}, {c, Replay, nil}, final[0], final[1], {c, Replay, nil}, notAllowed, notAllowed}},
		"commit an older one": {finish(15, Commit),
			[States]cell{unknownEvent, {c, Replay, nil}, {c, Replay, nil}, final[0], final[1], {c, Replay, nil}, notAllowed, notAllowed}},
		"reject the newest": {finish(20, Reject),
			[States]cell{unknownEvent, {x, Replay, nil}, {x, Replay, nil}, final[0], final[1], {x, Replay, nil}, notAllowed, notAllowed}},
		"abort the newest": {finish(20, Abort),
			[States]cell{unknownEvent, {o, Again, nil}, {o, Again, nil}, final[0], final[1], {h, Held, nil}, notAllowed, notAllowed}},
		"abort an older one": {finish(15, Abort),
			[States]cell{unknownEvent, {r, InDoubt, nil}, {o, Again, nil}, final[0], final[1], {h, Held, nil}, notAllowed, notAllowed}},
		"commit a closed one": {finish(10, Commit),
			[States]cell{unknownEvent, no(ErrAttemptClosed), no(ErrAttemptClosed), final[0], final[1], no(ErrAttemptClosed), notAllowed, notAllowed}},
		"commit one never made": {finish(21, Commit),
			[States]cell{unknownEvent, no(ErrUnknownAttempt), no(ErrUnknownAttempt), no(ErrUnknownAttempt), no(ErrUnknownAttempt), no(ErrUnknownAttempt), no(ErrUnknownAttempt), no(ErrUnknownAttempt)}},
		"an outcome there is none of": {finish(20, 77),
			[States]cell{unknownEvent, notAllowed, notAllowed, notAllowed, notAllowed, notAllowed, notAllowed, notAllowed}},
		"hold within the lease": {Hold{id.Key, noon},
			[States]cell{unknownEvent, notAllowed, notAllowed, notAllowed, notAllowed, {h, Held, nil}, notAllowed, notAllowed}},
		"hold after the lease": {Hold{id.Key, noon.Add(time.Minute)},
			[States]cell{unknownEvent, {h, Held, nil}, notAllowed, notAllowed, notAllowed, {h, Held, nil}, notAllowed, notAllowed}},
	} {
		for state := a; state < stateEnd; state++ {
			t.Run(name+" from "+state.String(), func(t *testing.T) {
				t.Parallel()
				cur, want := receiptIn(state), row.want[state]
				before := cur.clone()
				next, write, res, err := Step(row.transition, cur, state != StateAbsent)
				if !reflect.DeepEqual(cur, before) {
					t.Fatal("the receipt it was given has changed")
				}
				if want.err != nil {
					if !errors.Is(err, want.err) || write {
						t.Fatalf("got %v and write %t, want %v", err, write, want.err)
					}
					return
				}
				if err != nil || next.State != want.next || res.Kind != want.kind {
					t.Fatalf("got %v, %v, %v; want %v, %v", next.State, res.Kind, err, want.next, want.kind)
				}
				if moved := state == StateAbsent || !reflect.DeepEqual(next, before); moved != write || res.Changed != write {
					t.Fatalf("moved %t, written %t, said changed %t", moved, write, res.Changed)
				}
				if next.Attempt < before.Attempt || next.State.Final() != (next.Answer != nil) {
					t.Fatalf("%+v", next)
				}
			})
		}
	}
}

func TestNoStepFromAReceiptThatCannotBe(t *testing.T) {
	t.Parallel()
	for _, state := range []State{StateAbsent, stateEnd, 255} {
		_, write, _, err := Step(Reserve{Identity: Identity{Digest: Digest{1}}, At: noon}, Receipt{State: state, Digest: Digest{1}}, true)
		if write || !errors.Is(err, ErrNotAllowed) {
			t.Fatalf("%v: %v", state, err)
		}
	}
}

func TestTheNewestTokensAreKept(t *testing.T) {
	t.Parallel()
	var r Receipt
	for i := range 3 * MaxTokens {
		before := r.clone()
		next, _, _, err := Step(Reserve{Identity: Identity{Key: Key{"s", "e"}}, At: noon, Seed: Seed{byte(i)}}, r, i > 0)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(before, r) {
			t.Fatal("tokens are shared between receipts")
		}
		r = next
	}
	if len(r.Tokens) != MaxTokens || r.Tokens[MaxTokens-1] != (AttemptToken{r.Attempt, HashToken(Seed{3*MaxTokens - 1}.Token(r.Key, r.Attempt))}) {
		t.Fatalf("%d tokens, the last %+v", len(r.Tokens), r.Tokens[len(r.Tokens)-1])
	}
	if r.Attempts != 3*MaxTokens || !r.InDoubtBefore {
		t.Fatalf("%+v", r)
	}
}
