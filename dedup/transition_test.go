package dedup

import (
	"errors"
	"maps"
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

// rivals is receiptIn with one more attempt, 15, between the closed one, 10, and the newest, 20. In a final receipt
// the newest is the one that was answered. An attempt's token hash begins with its number.
func rivals(state State) Receipt {
	r := receiptIn(state)
	r.Attempts = 3
	r.Tokens = []AttemptToken{{10, [16]byte{10}}, {15, [16]byte{15}}, {20, [16]byte{20}}}
	return r
}

// cell is what a transition leads to from one state.
type cell struct {
	next  State // 0: refused with err
	kind  Kind
	err   error
	moves bool // it changes the receipt
}

// row is a transition and what it leads to from each state, in their order: absent, reserved, open, committed,
// rejected, held, queued, dead.
type row struct {
	transition Transition
	want       [States]cell
}

// The cells. Where it says "now", the transition writes.
var (
	unknownEvent, unknownAttempt = cell{err: ErrUnknownEvent}, cell{err: ErrUnknownAttempt}
	notAllowed, attemptClosed    = cell{err: ErrNotAllowed}, cell{err: ErrAttemptClosed}
	receiptDiffers               = cell{err: ErrReceiptDiffers}

	nowReserved    = cell{next: StateReserved, kind: Forward, moves: true}
	staysReserved  = cell{next: StateReserved, kind: InDoubt}
	notedReserved  = cell{next: StateReserved, kind: InDoubt, moves: true}
	nowOpen        = cell{next: StateOpen, kind: Again, moves: true}
	staysOpen      = cell{next: StateOpen, kind: Again}
	nowCommitted   = cell{next: StateCommitted, kind: Replay, moves: true}
	staysCommitted = cell{next: StateCommitted, kind: Replay}
	nowRejected    = cell{next: StateRejected, kind: Replay, moves: true}
	staysRejected  = cell{next: StateRejected, kind: Replay}
	nowHeld        = cell{next: StateHeld, kind: Held, moves: true}
	staysHeld      = cell{next: StateHeld, kind: Held}
)

// deliveryRows are what deliveries, their attempts and the end of a lease move.
func deliveryRows() map[string]row {
	id := Identity{Key: Key{"shop", "e"}, Digest: Digest{1}}
	other := Identity{Key: Key{"shop", "e"}, Digest: Digest{9}}
	reserve := func(id Identity, after time.Duration, p InDoubtPolicy) Reserve {
		return Reserve{Identity: id, At: noon.Add(after), Lease: time.Minute, InDoubt: p}
	}
	finish := func(attempt uint64, o Outcome) Finish {
		return Finish{Key: id.Key, Attempt: attempt, Outcome: o, Answer: Answer{Status: 201}, At: noon}
	}
	conflict := [States]cell{nowReserved}
	for state := StateReserved; state < stateEnd; state++ {
		conflict[state] = cell{next: state, kind: Conflict}
	}
	reserved := func(reserved cell) [States]cell {
		return [States]cell{nowReserved, reserved, nowReserved, staysCommitted, staysRejected, staysHeld, notAllowed, notAllowed}
	}
	committed := [States]cell{unknownEvent, nowCommitted, nowCommitted, staysCommitted, staysRejected, nowCommitted, notAllowed, notAllowed}
	return map[string]row{
		"reserve within the lease, redeliver":     {reserve(id, 0, Redeliver), reserved(staysReserved)},
		"reserve within the lease, hold":          {reserve(id, 0, HoldForPerson), reserved(staysReserved)},
		"reserve within the lease, ask":           {reserve(id, 0, Ask), reserved(staysReserved)},
		"reserve after the lease, redeliver":      {reserve(id, time.Minute, Redeliver), reserved(nowReserved)},
		"reserve after the lease, hold":           {reserve(id, time.Minute, HoldForPerson), reserved(nowHeld)},
		"reserve after the lease, ask":            {reserve(id, time.Minute, Ask), reserved(staysReserved)},
		"reserve long after the lease, ask":       {reserve(id, 1000*time.Hour, Ask), reserved(staysReserved)},
		"reserve after the lease, unknown policy": {reserve(id, time.Minute, 99), reserved(nowHeld)},
		"reserve other content":                   {reserve(other, time.Hour, Redeliver), conflict},
		"reserve other content, ask":              {reserve(other, time.Hour, Ask), conflict},
		"commit the newest":                       {finish(20, Commit), committed},
		"commit an older one":                     {finish(15, Commit), committed},
		"reject the newest": {finish(20, Reject),
			[States]cell{unknownEvent, nowRejected, nowRejected, staysCommitted, staysRejected, nowRejected, notAllowed, notAllowed}},
		"abort the newest": {finish(20, Abort),
			[States]cell{unknownEvent, nowOpen, staysOpen, staysCommitted, staysRejected, staysHeld, notAllowed, notAllowed}},
		"abort an older one": {finish(15, Abort),
			[States]cell{unknownEvent, staysReserved, staysOpen, staysCommitted, staysRejected, staysHeld, notAllowed, notAllowed}},
		"abort a closed one": {finish(10, Abort),
			[States]cell{unknownEvent, staysReserved, staysOpen, staysCommitted, staysRejected, staysHeld, notAllowed, notAllowed}},
		"commit a closed one": {finish(10, Commit),
			[States]cell{unknownEvent, attemptClosed, attemptClosed, staysCommitted, staysRejected, attemptClosed, notAllowed, notAllowed}},
		"commit one never made":       {finish(21, Commit), everywhere(unknownAttempt)},
		"commit attempt 0":            {finish(0, Commit), everywhere(unknownAttempt)},
		"an outcome there is none of": {finish(20, 77), everywhere(notAllowed)},
		"hold within the lease": {Hold{id.Key, noon},
			[States]cell{unknownEvent, notAllowed, notAllowed, notAllowed, notAllowed, staysHeld, notAllowed, notAllowed}},
		"hold after the lease": {Hold{id.Key, noon.Add(time.Minute)},
			[States]cell{unknownEvent, nowHeld, notAllowed, notAllowed, notAllowed, staysHeld, notAllowed, notAllowed}},
	}
}

// reportRows are what the app's own word moves: its confirmation, and its answer to the outcome question.
func reportRows() map[string]row {
	key := Key{"shop", "e"}
	confirm := func(attempt byte, o Outcome, status int) Confirm {
		return Confirm{Key: key, Token: [16]byte{attempt}, Outcome: o, Answer: Answer{Status: status}, Learned: LearnedCallback, At: noon}
	}
	absent := func(attempt uint64, fenced bool) Absent {
		return Absent{Key: key, Attempt: attempt, Fenced: fenced, At: noon}
	}
	extend := func(attempt uint64, lease time.Duration) Extend {
		return Extend{Key: key, Attempt: attempt, Lease: lease, At: noon}
	}
	from := func(reserved, open, committed, rejected, held cell) [States]cell {
		return [States]cell{unknownEvent, reserved, open, committed, rejected, held, notAllowed, notAllowed}
	}
	nothing := from(staysReserved, staysOpen, staysCommitted, staysRejected, staysHeld)
	return map[string]row{
		// A final receipt is the newest attempt's, with status 200.
		"confirm the newest": {confirm(20, Commit, 201), from(nowCommitted, nowCommitted, receiptDiffers, receiptDiffers, nowCommitted)},
		"confirm the newest, the receipt that stands": {confirm(20, Commit, 200),
			from(nowCommitted, nowCommitted, staysCommitted, receiptDiffers, nowCommitted)},
		"confirm the newest, rejected": {confirm(20, Reject, 201), from(nowRejected, nowRejected, receiptDiffers, receiptDiffers, nowRejected)},
		"confirm the newest, rejected as it stands": {confirm(20, Reject, 200),
			from(nowRejected, nowRejected, receiptDiffers, staysRejected, nowRejected)},
		"confirm an older one": {confirm(15, Commit, 201), from(nowCommitted, nowCommitted, receiptDiffers, receiptDiffers, nowCommitted)},
		"confirm an older one, the receipt that stands": {confirm(15, Commit, 200),
			from(nowCommitted, nowCommitted, staysCommitted, receiptDiffers, nowCommitted)},
		"confirm a closed one": {confirm(10, Commit, 201), from(attemptClosed, attemptClosed, attemptClosed, attemptClosed, attemptClosed)},
		"confirm a closed one, the receipt that stands": {confirm(10, Commit, 200), // it has found the other one's row
			from(attemptClosed, attemptClosed, staysCommitted, attemptClosed, attemptClosed)},
		"confirm a closed one, rejected as it stands": {confirm(10, Reject, 200),
			from(attemptClosed, attemptClosed, attemptClosed, staysRejected, attemptClosed)},
		"confirm by an unknown token":                 {confirm(21, Commit, 200), everywhere(unknownAttempt)},
		"confirm by an unknown token, aborted":        {confirm(21, Abort, 0), everywhere(unknownAttempt)},
		"confirm an outcome there is none of":         {confirm(20, 77, 200), everywhere(notAllowed)},
		"confirm the newest, aborted":                 {confirm(20, Abort, 0), from(nowOpen, staysOpen, receiptDiffers, receiptDiffers, staysHeld)},
		"confirm an older one, aborted":               {confirm(15, Abort, 0), nothing},
		"confirm a closed one, aborted":               {confirm(10, Abort, 0), nothing},
		"absent, the newest":                          {absent(20, false), from(nowOpen, staysOpen, staysCommitted, staysRejected, staysHeld)},
		"absent, an older one":                        {absent(15, false), nothing},
		"absent, a closed one":                        {absent(10, false), nothing},
		"absent, one never made":                      {absent(21, false), everywhere(unknownAttempt)},
		"absent, attempt 0":                           {absent(0, true), everywhere(unknownAttempt)},
		"absent and fenced, the newest":               {absent(20, true), from(nowOpen, cell{StateOpen, Again, nil, true}, staysCommitted, staysRejected, staysHeld)},
		"absent and fenced, an older one":             {absent(15, true), from(notedReserved, cell{StateOpen, Again, nil, true}, staysCommitted, staysRejected, staysHeld)},
		"absent and fenced, a closed one":             {absent(10, true), nothing},
		"absent and fenced, one never made":           {absent(21, true), everywhere(unknownAttempt)},
		"extend the newest, longer":                   {extend(20, time.Hour), from(notedReserved, staysOpen, staysCommitted, staysRejected, staysHeld)},
		"extend the newest, by a millisecond":         {extend(20, time.Minute+time.Millisecond), from(notedReserved, staysOpen, staysCommitted, staysRejected, staysHeld)},
		"extend the newest to what it has":            {extend(20, time.Minute), nothing},
		"extend the newest by less than records keep": {extend(20, time.Minute+time.Microsecond), nothing},
		"extend the newest, shorter":                  {extend(20, time.Second), nothing},
		"extend an older one":                         {extend(15, time.Hour), nothing},
		"extend a closed one":                         {extend(10, time.Hour), nothing},
		"extend one never made":                       {extend(21, time.Hour), everywhere(unknownAttempt)},
		"extend attempt 0":                            {extend(0, time.Hour), everywhere(unknownAttempt)},
	}
}

// everywhere is a refusal from every state but absent.
func everywhere(refusal cell) (row [States]cell) {
	row[StateAbsent] = unknownEvent
	for state := StateReserved; state < stateEnd; state++ {
		row[state] = refusal
	}
	return row
}

func TestEveryTransitionFromEveryState(t *testing.T) {
	t.Parallel()
	rows := deliveryRows()
	maps.Copy(rows, reportRows())
	for name, row := range rows {
		for state := StateAbsent; state < stateEnd; state++ {
			t.Run(name+" from "+state.String(), func(t *testing.T) {
				t.Parallel()
				cur, want := rivals(state), row.want[state]
				if state == StateAbsent {
					cur = Receipt{}
				}
				before := cur.clone()
				next, write, res, err := Step(row.transition, cur, state != StateAbsent)
				if !reflect.DeepEqual(cur, before) {
					t.Fatal("the receipt it was given has changed")
				}
				if want.err != nil {
					if !errors.Is(err, want.err) || write || res.Changed || !reflect.DeepEqual(res.Receipt, before) {
						t.Fatalf("got %v, write %t, result %+v; want %v and the receipt that stands", err, write, res, want.err)
					}
					return
				}
				if err != nil || next.State != want.next || res.Kind != want.kind || !reflect.DeepEqual(res.Receipt, next) {
					t.Fatalf("got %v, %v, %v, %+v; want %v, %v", next.State, res.Kind, err, res.Receipt, want.next, want.kind)
				}
				if moved := !reflect.DeepEqual(next, before); moved != want.moves || write != want.moves || res.Changed != want.moves {
					t.Fatalf("moved %t, written %t, said changed %t; want %t", moved, write, res.Changed, want.moves)
				}
				if next.Attempt < before.Attempt || next.Closed < before.Closed || next.State.Final() != (next.Answer != nil) ||
					next.State.Final() != (next.Decided != 0) || next.State == StateReserved && next.Lease.Before(before.Lease) {
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
