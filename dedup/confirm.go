package dedup

import "time"

// Confirm is the app's own word on one of its attempts, named by its token: before its HTTP answer or after it, after
// the sender was answered, after the lease, and while a later attempt runs. Every attempt that is not closed may
// confirm (T3, T6); `aborted` frees the event if the attempt is its newest (T4).
//
// Errors: ErrUnknownEvent; ErrUnknownAttempt for a token that is none of the event's; ErrAttemptClosed;
// ErrReceiptDiffers. Saying the same twice is no error and writes nothing.
type Confirm struct {
	Key     Key
	Token   [16]byte // HashToken of the attempt's token
	Made    uint64   // number of the attempt that the store's seed says it is of; 0: only the receipt tells
	Outcome Outcome
	Answer  Answer // Commit and Reject: what every repeat gets
	Learned Learned
	At      time.Time
}

// Of is the event.
func (t Confirm) Of() Identity { return Identity{Key: t.Key} }

func (t Confirm) step(cur Receipt, found bool) (Receipt, bool, Result, error) {
	if !found {
		return refused(t, cur, ErrUnknownEvent)
	}
	attempt, known := cur.attemptOf(t.Token, t.Made)
	switch {
	case !known:
		return refused(t, cur, ErrUnknownAttempt)
	case cur.State == StateQueued || cur.State == StateDead || t.Outcome > Reject:
		return refused(t, cur, ErrNotAllowed)
	case t.Outcome == Abort && (!cur.State.Final() || attempt != cur.Decided):
		// Of another attempt's receipt, and of one that was closed, it says nothing new.
		if cur.State.Final() {
			return unchanged(Replay, cur)
		}
		return free(cur, attempt, t.At)
	case cur.State.Final() && t.same(cur):
		return unchanged(Replay, cur) // of a closed attempt, too: the app found the row of another one
	case attempt <= cur.Closed:
		return refused(t, cur, ErrAttemptClosed) // I9, whatever the state
	case cur.State.Final():
		return refused(t, cur, ErrReceiptDiffers) // I4
	}
	return decide(cur, attempt, t.Outcome, t.Answer, t.Learned, t.At)
}

// same tells whether the confirmation is the receipt that stands.
func (t Confirm) same(cur Receipt) bool {
	stands := Commit
	if cur.State == StateRejected {
		stands = Reject
	}
	return t.Outcome == stands && cur.Answer != nil && cur.Answer.Same(t.Answer)
}
