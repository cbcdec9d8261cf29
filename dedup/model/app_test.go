package model

import "github.com/einlass/einlass/dedup"

// replies are all the app may say now to the outcome question.
func (m *model) replies(s *state) []uint8 {
	switch {
	case s.row == rowCommitted || s.tokens != 0:
		return []uint8{repliesDone1}
	case s.row == rowRejected:
		return []uint8{repliesRejected}
	}
	can := []uint8{repliesAbsent}
	if m.app.fenced {
		can[0] = repliesFenced
	}
	if m.app.unsure {
		can = append(can, repliesAbsent)
	}
	if m.app.early && s.working() {
		can = append(can, repliesPending)
	}
	return can
}

var replyNames = [...]string{"", "committed", "committed (2)", "rejected", "absent", "absent, fenced", "pending"}

// questioned is what the question does in the app's database.
func (s *state) questioned(reply, attempt uint8) {
	if reply == repliesFenced {
		s.fence = max(s.fence, attempt)
	}
}

func (s *state) working() bool {
	for _, c := range s.copies {
		if c.at == running {
			return true
		}
	}
	return false
}

// works are the steps of the app about one copy of an attempt.
func (m *model) works(s *state, i int) {
	c := s.copies[i]
	if i > 0 && s.copies[i-1] == c {
		return // the same as the last
	}
	n := *s
	switch c.at {
	case nowhere:
	case onTheWay:
		n.copies[i].at = running
		m.emit(&n, "the app receives attempt %d", c.attempt)
		if s.losses > 0 {
			n = *s
			n.losses--
			n.copies[i] = forward{}
			m.emit(&n, "a forward of attempt %d is lost", c.attempt)
		}
	case running:
		m.decide(s, i)
	default:
		m.say(s, i)
	}
}

// decide is the app's transaction.
func (m *model) decide(s *state, i int) {
	c, a := s.copies[i], m.app
	say := func(word uint8, n state, text string) {
		n.copies[i].at = word
		m.emit(&n, text, c.attempt)
	}
	if a.early {
		m.sayEarly(s, c.attempt)
	}
	switch known := s.rowOf(a, c.attempt); {
	case known != nowhere:
		say(known, *s, "the app finds its row at attempt %d")
		if a.careless {
			say(saysAborted, *s, "the app aborts attempt %d on its row, without a look at it")
		}
		return
	case a.fenced && s.fence >= c.attempt:
		say(saysAborted, *s, "the app refuses attempt %d, as it had said")
		return
	}
	if s.effects < 2 {
		n := *s
		n.effects++
		switch a.rows {
		case eventRow:
			n.row = rowCommitted
		case tokenRow:
			n.tokens |= bit(c.attempt)
		}
		say(saysDone1+n.effects-1, n, "the app commits attempt %d")
	}
	if a.rejects {
		n := *s
		n.row = rowRejected
		say(saysRejected, n, "the app refuses the event for good, at attempt %d")
	}
	n := *s
	if a.fencedAborts {
		n.fence = max(n.fence, c.attempt)
	}
	if a.plain {
		say(saysFailed, n, "the app fails at attempt %d")
		return
	}
	say(saysAborted, n, "the app aborts attempt %d")
}

// rowOf is what the app says of an attempt that meets a row.
func (s *state) rowOf(a app, attempt uint8) uint8 {
	switch {
	case a.rows == eventRow && s.row == rowCommitted:
		return saysDone1
	case a.rows == eventRow && s.row == rowRejected:
		return saysRejected
	case a.rows == tokenRow && s.tokens&bit(attempt) != 0:
		return saysDone1
	}
	return nowhere
}

// sayEarly answers an attempt that the app goes on with.
func (m *model) sayEarly(s *state, attempt uint8) {
	n := *s
	word := uint8(saysPending)
	if m.app.callback {
		word = saysAccepted
	}
	if n.hear(attempt, word) {
		m.emit(&n, "the app answers attempt %d before its end", attempt)
	}
}

// say sends what a copy has come to: the HTTP answer, and the callback.
func (m *model) say(s *state, i int) {
	c, n := s.copies[i], *s
	n.copies[i] = forward{}
	word := c.at
	if m.app.callback {
		word = m.call(&n, c)
	}
	n.hear(c.attempt, word)
	m.emit(&n, "the app answers attempt %d", c.attempt)
}

// call confirms by callback, and tells what is left to say in the HTTP answer.
func (m *model) call(n *state, c forward) (word uint8) {
	outcome, receipt := dedup.Abort, uint8(0)
	word = saysAccepted
	switch c.at {
	case saysDone1, saysDone2:
		outcome, receipt = dedup.Commit, c.at-saysDone1+1
	case saysRejected:
		outcome, receipt = dedup.Reject, refusal
	case saysFailed:
		return saysFailed
	default:
		word = saysFailed
	}
	n.callbacks[c.attempt-1] |= callbackBit(outcome, receipt)
	if m.app.verdicts {
		return c.at
	}
	return word
}

// hear brings an answer to the process that waits for it, if there is one.
func (s *state) hear(attempt, word uint8) bool {
	for p := range s.procs {
		if f := &s.procs[p].flights[attempt-1]; (f.at == sent || f.at == overdue) && f.answer == nowhere {
			f.answer = word
			return true
		}
	}
	return false
}

// callbackBit is a confirmation's place in callbacks.
func callbackBit(outcome dedup.Outcome, receipt uint8) uint8 {
	switch outcome {
	case dedup.Commit:
		return 1 << receipt // 1, 2
	case dedup.Reject:
		return 1 << 3
	default:
		return 1 << 0
	}
}

// calls are the confirmations on their way.
func (m *model) calls(s *state) {
	for i, bits := range s.callbacks {
		for place := range uint8(4) {
			if bits&(1<<place) == 0 {
				continue
			}
			attempt, outcome, receipt := uint8(i+1), dedup.Abort, uint8(0)
			switch place {
			case 1, 2:
				outcome, receipt = dedup.Commit, place
			case 3:
				outcome, receipt = dedup.Reject, refusal
			}
			for p := range m.gates {
				if s.procs[p].alive() {
					m.confirmed(s, p, attempt, outcome, receipt)
				}
			}
			if s.losses > 0 {
				n := *s
				n.losses--
				n.callbacks[i] &^= 1 << place
				m.emit(&n, "the callback of attempt %d is lost", attempt)
			}
		}
	}
}
