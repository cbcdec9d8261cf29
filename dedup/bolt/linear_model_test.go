package bolt

import (
	"reflect"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/einlass/einlass/dedup"
	"github.com/einlass/einlass/dedup/deduptest"
)

// gateCall is an operation on the gate. The end of an attempt is two: its outcome is stored, then the attempt is over
// and nobody waits for it any more. Both lie between call and return.
type gateCall struct {
	do      gateVerb
	id      dedup.Identity
	attempt uint64
	outcome dedup.Outcome
	answer  dedup.Answer
	token   [16]byte
	at      time.Time // the gate's clock stands still meanwhile
	seed    dedup.Seed
}

type gateVerb string

const (
	doLookUp  gateVerb = "look up"
	doReserve gateVerb = "reserve"
	doFinish  gateVerb = "store the end"
	doEnd     gateVerb = "be over"
	doLeave   gateVerb = "be over, without a stored end"
	doConfirm gateVerb = "confirm"
	doRelease gateVerb = "release who waits for what was confirmed"
	doRestart gateVerb = "restart"
)

type gateAnswer struct {
	kind    dedup.Kind
	receipt dedup.Receipt
	silent  bool // the receipt is not told
	rule    error
	unknown bool
}

// gated is an event as a gate that keeps the rules has it.
type gated struct {
	receipt  *dedup.Receipt
	running  *dedup.Receipt // the attempt that runs in this process, as it was reserved
	stored   bool           // its end is
	released bool           // its event was decided in another way
}

// alone tells whether no attempt runs in this process.
func (g gated) alone() bool { return g.running == nil || g.released }

// ours is a receipt without the process that reserved it: the gate's number is its own secret.
func ours(r dedup.Receipt) dedup.Receipt {
	r.Owner = [16]byte{}
	return r
}

var gateModel = porcupine.Model{
	Partition: partition(func(in any) string { return in.(gateCall).id.Event }),
	Init:      func() any { return gated{} },
	Step: func(state, in, out any) (bool, any) {
		return state.(gated).step(in.(gateCall), out.(gateAnswer))
	},
	Equal: func(a, b any) bool {
		v, w := a.(gated), b.(gated)
		return v.stored == w.stored && v.released == w.released && sameReceipt(v.receipt, w.receipt) && sameReceipt(v.running, w.running)
	},
}

func (g gated) step(call gateCall, told gateAnswer) (bool, gated) {
	mine := g.running != nil && g.running.Attempt == call.attempt
	switch call.do {
	case doLookUp:
		return g.sees(call, told), g
	case doReserve:
		if told.kind == dedup.Running { // that attempt may be released, but it is not over
			return g.running != nil && reflect.DeepEqual(told.receipt, *g.running), g
		}
		ok, next := g.apply(dedup.Reserve{Identity: call.id, At: call.at, Lease: deduptest.Lease, Seed: call.seed}, told)
		if told.kind == dedup.Forward && !told.unknown {
			next.running, next.stored, next.released = next.receipt, false, false
		}
		return ok && (told.unknown || told.kind == dedup.Replay || g.alone()), next
	case doFinish:
		ok, next := g.apply(dedup.Finish{Key: call.id.Key, Attempt: call.attempt, Outcome: call.outcome, Answer: call.answer,
			Learned: dedup.LearnedResponse, At: call.at}, told)
		next.stored = next.stored || mine
		return ok, next
	case doConfirm:
		return g.apply(dedup.Confirm{Key: call.id.Key, Token: call.token, Outcome: call.outcome, Answer: call.answer,
			Learned: dedup.LearnedCallback, At: call.at}, told)
	case doRelease: // the running attempt's event is final, or open again
		decided := told.receipt.State.Final() || mine && told.receipt.State == dedup.StateOpen
		g.released = g.released || g.running != nil && decided
		return true, g
	case doEnd:
		if mine && !g.stored {
			return false, g // what is over can be told from what is not: its end must be stored by now
		}
	}
	if mine || call.do == doRestart {
		g.running, g.stored, g.released = nil, false, false
	}
	return true, g
}

// apply is a step of the receipt.
func (g gated) apply(t dedup.Transition, told gateAnswer) (bool, gated) {
	var cur dedup.Receipt
	if g.receipt != nil {
		cur = *g.receipt
	}
	next, write, res, err := dedup.Step(t, cur, g.receipt != nil)
	if write {
		next = ours(next)
		g.receipt = &next
	}
	_, _, rule := fate(nil, err)
	switch {
	case told.unknown:
		return true, g
	case rule != nil || told.rule != nil:
		return rule == told.rule, g //nolint:errorlint // the very sentinel
	case told.silent:
		return true, g
	}
	return (told.kind == 0 || told.kind == res.Kind) && reflect.DeepEqual(told.receipt, ours(res.Receipt)), g
}

// sees tells whether a delivery that looks may be told this.
func (g gated) sees(call gateCall, told gateAnswer) bool {
	if g.receipt == nil {
		return told.kind == dedup.First
	}
	if !reflect.DeepEqual(told.receipt, *g.receipt) {
		return false
	}
	switch r := g.receipt; told.kind {
	case dedup.Replay:
		return r.State.Final()
	case dedup.Again:
		return r.State == dedup.StateOpen || r.State == dedup.StateReserved && !call.at.Before(r.Lease) && g.alone()
	case dedup.InDoubt:
		return r.State == dedup.StateReserved && call.at.Before(r.Lease) && g.alone()
	case dedup.Running:
		return r.State == dedup.StateReserved
	}
	return false
}
