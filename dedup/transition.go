package dedup

import (
	"fmt"
	"time"
)

// Transition is one step of one event. The set is closed: [Reserve], [Finish], [Confirm], [Absent], [Extend], [Hold].
// (Resolve, Queue and Expire will join it: T9, T10, T11.)
type Transition interface {
	// Of is the event the step is about. With Guard, the store finds out which event that really is.
	Of() Identity

	// step is the rule. It is pure: time comes in the struct, and cur is not changed.
	step(cur Receipt, found bool) (next Receipt, write bool, res Result, err error)
}

// Result is what a transition has led to.
type Result struct {
	Kind    Kind    // Forward: this reservation is the attempt. Otherwise what the event is now
	Receipt Receipt // as it is stored now; the zero Receipt where there is none
	Changed bool    // the receipt was written
}

// Step applies a transition to an event's receipt: it is all that a store needs to know of the protocol. found
// tells whether there is a receipt; cur is that receipt, or zero. Where write is true, the store has to save next,
// atomically with having loaded cur, before it hands out res. An error means that the rules refuse the step and
// that nothing changes. Step has no side effect; running it again on the same receipt gives the same.
func Step(t Transition, cur Receipt, found bool) (next Receipt, write bool, res Result, err error) {
	if !found {
		cur = Receipt{}
	} else if cur.State == StateAbsent || cur.State >= stateEnd {
		return cur, false, Result{}, fmt.Errorf("%w: receipt in %s", ErrNotAllowed, cur.State)
	}
	return t.step(cur, found)
}

// changed is the outcome of a step that writes.
func changed(kind Kind, next Receipt, at time.Time) (Receipt, bool, Result, error) {
	next.Updated = stamp(at)
	return next, true, Result{Kind: kind, Receipt: next, Changed: true}, nil
}

// unchanged is the outcome of a step that meets a state it has nothing to do in.
func unchanged(kind Kind, cur Receipt) (Receipt, bool, Result, error) {
	return cur, false, Result{Kind: kind, Receipt: cur}, nil
}

func refused(t Transition, cur Receipt, err error) (Receipt, bool, Result, error) {
	return cur, false, Result{Receipt: cur}, fmt.Errorf("%w: %T of %q/%q in state %s",
		err, t, t.Of().Source, t.Of().Event, cur.State)
}
