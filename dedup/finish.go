package dedup

import (
	"strconv"
	"time"
)

// Outcome is how an attempt has ended.
type Outcome uint8

// The outcomes. There is none for "unknown": an attempt whose end is unknown moves nothing.
const (
	Abort  Outcome = iota // nothing has happened, nothing will: the next delivery is forwarded (T4)
	Commit                // the app has done its work (T3)
	Reject                // the app refuses the event for good (T6)
)

// String is the outcome's name in logs.
func (o Outcome) String() string {
	switch o {
	case Abort:
		return "aborted"
	case Commit:
		return "committed"
	case Reject:
		return "rejected"
	}
	return "outcome " + strconv.Itoa(int(o))
}

// Finish ends an attempt of this process with what became of it.
type Finish struct {
	Key     Key
	Attempt uint64
	Outcome Outcome
	Answer  Answer // Commit and Reject: what every repeat gets
	Learned Learned
	At      time.Time
}

// Of is the event.
func (t Finish) Of() Identity { return Identity{Key: t.Key} }

func (t Finish) step(cur Receipt, found bool) (Receipt, bool, Result, error) {
	switch {
	case !found:
		return refused(t, cur, ErrUnknownEvent)
	case t.Attempt == 0 || t.Attempt > cur.Attempt:
		return refused(t, cur, ErrUnknownAttempt)
	case cur.State == StateQueued || cur.State == StateDead || t.Outcome > Reject:
		return refused(t, cur, ErrNotAllowed)
	case cur.State.Final():
		return unchanged(Replay, cur) // I4: of two outcomes the first stands
	case t.Outcome == Abort:
		return t.abort(cur)
	case t.Attempt <= cur.Closed:
		return refused(t, cur, ErrAttemptClosed) // I9
	}

	// Rule 1: any attempt that is not closed may confirm, whatever the lease says, however many are newer, and also
	// when a person was to decide.
	cur.State = StateCommitted // T3
	if t.Outcome == Reject {
		cur.State = StateRejected // T6
	}
	cur.Decided = t.Attempt
	cur.Answer = t.Answer.clone()
	cur.Learned = t.Learned
	cur.Lease = time.Time{}
	return changed(Replay, cur, t.At)
}

// abort frees the event, but only on the word of its newest attempt: an older one says nothing about the attempt
// that runs now. The attempt is not closed (rule 1), so its token stays.
func (t Finish) abort(cur Receipt) (Receipt, bool, Result, error) {
	switch {
	case cur.State == StateReserved && t.Attempt == cur.Attempt:
		cur.State = StateOpen // T4
		cur.Lease = time.Time{}
		return changed(Again, cur, t.At)
	case cur.State == StateReserved:
		return unchanged(InDoubt, cur)
	case cur.State == StateHeld:
		return unchanged(Held, cur)
	default: // open
		return unchanged(Again, cur)
	}
}
