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

// Finish ends an attempt with what became of it, as its number says which one it is: the word of its owner in this
// process, in time or late, or the app's answer to the outcome question.
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
	if err := spoken(cur, found, t.Attempt); err != nil {
		return refused(t, cur, err)
	}
	switch {
	case t.Outcome > Reject:
		return refused(t, cur, ErrNotAllowed)
	case cur.State.Final():
		return unchanged(Replay, cur) // I4: of two outcomes the first stands
	case t.Outcome == Abort:
		return free(cur, t.Attempt, t.At)
	case t.Attempt <= cur.Closed:
		return refused(t, cur, ErrAttemptClosed) // I9
	}
	return decide(cur, t.Attempt, t.Outcome, t.Answer, t.Learned, t.At)
}

// spoken refuses a word about an attempt that there is none of, or whose event only the inbox moves.
func spoken(cur Receipt, found bool, attempt uint64) error {
	switch {
	case !found:
		return ErrUnknownEvent
	case attempt == 0 || attempt > cur.Attempt:
		return ErrUnknownAttempt
	case cur.State == StateQueued || cur.State == StateDead:
		return ErrNotAllowed
	}
	return nil
}

// decide stores the outcome. Rule 1: any attempt that is not closed may confirm, whatever the lease says, however many
// are newer, and also when a person was to decide.
func decide(cur Receipt, attempt uint64, o Outcome, a Answer, how Learned, at time.Time) (Receipt, bool, Result, error) {
	cur.State = StateCommitted // T3
	if o == Reject {
		cur.State = StateRejected // T6
	}
	cur.Decided = attempt
	cur.Answer = a.clone()
	cur.Learned = how
	cur.Lease = time.Time{}
	return changed(Replay, cur, at)
}

// free opens the event for its next delivery, but only on the word of its newest attempt: an older one says nothing
// about the attempt that runs now. The attempt is not closed (rule 1): it may still confirm.
func free(cur Receipt, attempt uint64, at time.Time) (Receipt, bool, Result, error) {
	if cur.State != StateReserved || attempt != cur.Attempt {
		return unchanged(standing(cur), cur)
	}
	cur.State = StateOpen // T4
	cur.Lease = time.Time{}
	return changed(Again, cur, at)
}

// standing is what an undecided event is to whoever reports something of it that moves nothing.
func standing(cur Receipt) Kind {
	switch cur.State {
	case StateReserved:
		return InDoubt
	case StateHeld:
		return Held
	default: // open
		return Again
	}
}
