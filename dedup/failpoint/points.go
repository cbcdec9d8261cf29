// Package failpoint names the places at which the kill test ends the process: before and after every durable step and
// every message. Only a build with the tag einlass_failpoints can be ended there; in every other one Hit is empty.
//
//	EINLASS_FAILPOINT=forward-sent:3   the process is killed, as by kill -9, when it passes forward-sent for the third time
//	EINLASS_FAILPOINT=record           it writes each point's name to its standard error when it first passes it
package failpoint

// Around the store's step, by what it does. The step is durable in between.
const (
	ReserveBefore = "store-reserve-before"
	ReserveAfter  = "store-reserve-after"
	CommitBefore  = "store-commit-before"
	CommitAfter   = "store-commit-after"
	RejectBefore  = "store-reject-before"
	RejectAfter   = "store-reject-after"
	AbortBefore   = "store-abort-before"
	AbortAfter    = "store-abort-after"
	ConfirmBefore = "store-confirm-before"
	ConfirmAfter  = "store-confirm-after"
	AbsentBefore  = "store-absent-before"
	AbsentAfter   = "store-absent-after"
	ExtendBefore  = "store-extend-before"
	ExtendAfter   = "store-extend-after"
	HoldBefore    = "store-hold-before"
	HoldAfter     = "store-hold-after"
)

// Around the file's commit, which is that of all steps in a group.
const (
	GroupBefore = "bolt-group-before"
	GroupAfter  = "bolt-group-after" // nobody knows of it yet
)

// Around the messages.
const (
	DeliveryArrived = "delivery-arrived" // its headers are here
	DeliveryRead    = "delivery-read"    // its body, too; nothing is checked

	ForwardBefore   = "forward-before"
	ForwardHeaders  = "forward-headers" // written, the body is not
	ForwardSent     = "forward-sent"
	ForwardAnswered = "forward-answered" // nothing is stored

	AnswerBefore = "answer-before"
	AnswerBegun  = "answer-begun" // the headers are with the sender; also of an answer to the app
	AnswerAfter  = "answer-after"

	CallbackRead     = "callback-read"
	CallbackBefore   = "callback-before" // its answer
	CallbackAnswered = "callback-answered"

	OutcomeBefore   = "outcome-before" // the question
	OutcomeAnswered = "outcome-answered"
)

// All are all points. A new one is missed by the kill test until it stands here, and fails it until it is reached.
var All = []string{
	ReserveBefore, ReserveAfter, CommitBefore, CommitAfter, RejectBefore, RejectAfter, AbortBefore, AbortAfter,
	ConfirmBefore, ConfirmAfter, AbsentBefore, AbsentAfter, ExtendBefore, ExtendAfter, HoldBefore, HoldAfter,
	GroupBefore, GroupAfter,
	DeliveryArrived, DeliveryRead,
	ForwardBefore, ForwardHeaders, ForwardSent, ForwardAnswered,
	AnswerBefore, AnswerBegun, AnswerAfter,
	CallbackRead, CallbackBefore, CallbackAnswered,
	OutcomeBefore, OutcomeAnswered,
}
