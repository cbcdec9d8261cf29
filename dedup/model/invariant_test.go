package model

import "github.com/einlass/einlass/dedup"

// invariant is one of the protocol notes' (section 9). I2 and I13 are not the model's.
type invariant uint8

const (
	reserveFirst invariant = 1  // the app receives a byte of an attempt only after its reservation is durable
	ackRecorded  invariant = 3  // an acknowledged outcome, to the sender or the app, is durable
	oneReceipt   invariant = 4  // all acknowledgements carry the same receipt, and a final one never changes
	bytesBound   invariant = 5  // every forward has the bytes first recorded
	oneAttempt   invariant = 6  // at most one attempt with a running lease, one in a process; numbers only grow
	effectOnce   invariant = 7  // the effect happens at most once
	noFalseDone  invariant = 8  // a final state says what the app has done
	closedStays  invariant = 9  // a closed attempt moves nothing
	learns       invariant = 10 // from every state where the app holds the effect, `committed` can be reached
	finishes     invariant = 11 // while a delivery is left, a final state can be reached
	monotone     invariant = 12 // a restart loses nothing that was written
)

func (i invariant) String() string {
	return [...]string{"nothing", "I1 reserve before forward", "I2", "I3 ack implies record", "I4 receipt is single",
		"I5 bytes bound", "I6 one live attempt", "I7 effect at most once", "I8 no false outcome", "I9 closed stays closed",
		"I10 learns", "I11 finishes", "I12 recovery is monotone"}[i]
}

// breaks notes that the step under way breaks an invariant.
func (m *model) breaks(i invariant) {
	if m.broken == 0 && m.checks(i) {
		m.broken = i
	}
}

// checkStep holds one move of the receipt against what no move may do.
func (m *model) checkStep(mv move, before, after record) {
	if m.decides(mv, before) && !after.final() {
		m.breaks(learns)
	}
	if before == after {
		return
	}
	if mv.attempt != 0 && mv.attempt <= before.closed {
		m.breaks(closedStays)
	}
	if after.closed < before.closed {
		m.breaks(closedStays)
	}
	if after.attempt < before.attempt {
		m.breaks(oneAttempt)
	}
	if before.digest != 0 && after.digest != before.digest {
		m.breaks(bytesBound)
	}
}

// decides tells whether a move must lead to a final state: an outcome of any attempt that is not closed (rule 1).
func (m *model) decides(mv move, before record) bool {
	return (mv.kind == finish || mv.kind == confirm) && mv.outcome != dedup.Abort &&
		before.found() && before.tokens&bit(mv.attempt) != 0 && mv.attempt > before.closed
}

// checkState holds a state, and the step to it, against what must be true of every one.
func (m *model) checkState(from, s *state) {
	if from.store.final() && s.store != from.store && s.restores == from.restores {
		m.breaks(oneReceipt)
	}
	if s.effects > 1 {
		m.breaks(effectOnce)
	}
	switch {
	case s.store.state == committed && (s.effects == 0 || s.store.answer == refusal || s.store.answer > s.effects):
		m.breaks(noFalseDone)
	case s.store.state == rejected && (s.row != rowRejected || s.store.answer != refusal):
		m.breaks(noFalseDone)
	}
}

// forwards checks a reservation that was made, against the world before it.
func (m *model) forwards(before *state, p int, attempt uint8) {
	if attempt <= before.issued || before.live != 0 || before.procs[p].running != 0 {
		m.breaks(oneAttempt)
	}
}

// answers notes that the sender is told this receipt.
func (m *model) answers(s *state, receipt uint8) {
	if !s.store.final() || s.store.answer != receipt {
		m.breaks(ackRecorded)
	}
	if s.told != 0 && s.told != receipt {
		m.breaks(oneReceipt)
	}
	s.told = receipt
}

// restarts checks what a killed process finds again.
func (m *model) restarts(before, after record) {
	if before.final() && after != before || before.found() && !after.found() ||
		after.attempt < before.attempt || after.closed < before.closed {
		m.breaks(monotone)
	}
}

// mustLearn and mustFinish tell where I10 and I11 promise something.

func (m *model) mustLearn(s *state) bool {
	if !m.checks(learns) || s.effects == 0 {
		return false
	}
	// A backup may know nothing of the event, or nothing of an attempt that could be asked about.
	forgotten := !m.strict && m.budget.restores > 0 && !s.store.final() && !s.store.mayConfirm()
	return !forgotten || s.left[0] > 0
}

func (m *model) mustFinish(s *state) bool { return m.checks(finishes) && s.left[0] > 0 }
