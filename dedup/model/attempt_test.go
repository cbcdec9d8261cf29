package model

import "github.com/einlass/einlass/dedup"

// send forwards an attempt in as many copies.
func (m *model) send(n *state, p int, k uint8, copies int) {
	f := &n.procs[p].flights[k-1]
	if n.lasted&bit(k) == 0 {
		m.breaks(reserveFirst)
	}
	if n.store.found() && f.digest != n.store.digest {
		m.breaks(bytesBound)
	}
	for range copies {
		n.add(k)
	}
	f.at, f.answer = sent, nowhere
}

// flies are the steps of an attempt that runs in a process.
func (m *model) flies(s *state, p int, k uint8) {
	f := s.procs[p].flights[k-1]
	switch f.at {
	case ready:
		m.leaves(s, p, k)
	case sent:
		if f.answer != nowhere {
			m.conclude(s, p, k)
		}
		n := *s
		if m.off.timeoutFrees {
			m.finish(&n, p, k, dedup.Abort, 0)
		} else {
			m.lands(&n, p, k)
		}
		m.emit(&n, "gate %d leaves attempt %d: its answer is lost", p, k)
		if f.answer == nowhere && !m.off.timeoutFrees {
			n.procs[p].flights[k-1].at = overdue
			m.emit(&n, "gate %d leaves attempt %d: no answer in time", p, k)
		}
	case overdue:
		m.late(s, p, k)
	case settling:
		m.settles(s, p, k)
	case accepted:
		if s.store.state != reserved || s.store.attempt != k || s.store.lease == leaseOver {
			n := *s
			m.lands(&n, p, k)
			m.emit(&n, "gate %d: the time for the confirmation of attempt %d is over", p, k)
		}
	}
}

// leaves are the ways in which an attempt may leave the gate.
func (m *model) leaves(s *state, p int, k uint8) {
	n := *s
	if s.procs[p].running != k {
		m.lands(&n, p, k)
		m.emit(&n, "gate %d leaves attempt %d, which was decided before it was forwarded", p, k)
		n = *s
	}
	m.send(&n, p, k, 1)
	m.emit(&n, "gate %d forwards attempt %d", p, k)
	if s.doubles > 0 {
		n = *s
		n.doubles--
		m.send(&n, p, k, 2)
		m.emit(&n, "gate %d forwards attempt %d, twice on the wire", p, k)
	}
	if s.losses == 0 {
		return
	}
	n = *s
	n.losses--
	m.send(&n, p, k, 0)
	m.emit(&n, "gate %d forwards attempt %d, lost on the wire", p, k)
	n = *s
	n.losses--
	m.finish(&n, p, k, dedup.Abort, 0)
	m.emit(&n, "gate %d forwards attempt %d: connection refused", p, k)
}

// lands ends an attempt that runs in a process; see dedup.Attempt's ended.
func (m *model) lands(n *state, p int, k uint8) {
	pr := &n.procs[p]
	pr.flights[k-1] = flight{}
	if pr.running == k {
		pr.running = 0
		pr.tracked = 1 // canonical drops it where nothing is left to ask
	}
}

// finish ends an attempt with an outcome and answers its sender, if nobody else has, with what is stored then.
func (m *model) finish(n *state, p int, k uint8, outcome dedup.Outcome, receipt uint8) {
	waits := n.procs[p].running == k
	if m.off.answerFirst && outcome != dedup.Abort {
		m.answers(n, receipt)
	}
	res := m.apply(n, move{kind: finish, attempt: k, outcome: outcome, answer: receipt})
	m.lands(n, p, k)
	if res.err == nil && outcome != dedup.Abort && waits {
		m.answers(n, n.store.answer)
	}
}

// conclude is what the gate makes of the app's answer.
func (m *model) conclude(s *state, p int, k uint8) {
	n := *s
	f := &n.procs[p].flights[k-1]
	switch f.answer {
	case saysDone1, saysDone2:
		m.finish(&n, p, k, dedup.Commit, f.answer-saysDone1+1)
		m.emit(&n, "gate %d stores that attempt %d is committed, and answers", p, k)
	case saysRejected:
		m.finish(&n, p, k, dedup.Reject, refusal)
		m.emit(&n, "gate %d stores that attempt %d is rejected, and answers", p, k)
	case saysFailed:
		if m.asks() {
			f.at, f.answer = settling, 0
			m.emit(&n, "gate %d asks about attempt %d, which failed", p, k)
			return
		}
		fallthrough
	case saysAborted:
		m.finish(&n, p, k, dedup.Abort, 0)
		m.emit(&n, "gate %d stores that attempt %d is aborted", p, k)
	case saysAccepted:
		if m.off.acceptedCommits {
			m.finish(&n, p, k, dedup.Commit, 1)
			m.emit(&n, "gate %d takes attempt %d, accepted, for committed", p, k)
			return
		}
		m.accepts(&n, p, k)
		m.emit(&n, "gate %d waits for the confirmation of attempt %d", p, k)
	case saysPending:
		m.settle(&n, p, k, repliesPending)
		m.emit(&n, "gate %d hears that attempt %d is still at work", p, k)
	}
}

// late is an attempt that was left, whose handler comes back at last: see dedup.Attempt's Confirm.
func (m *model) late(s *state, p int, k uint8) {
	n := *s
	mv := move{kind: finish, attempt: k, outcome: dedup.Commit}
	switch word := s.procs[p].flights[k-1].answer; word {
	case saysDone1, saysDone2:
		mv.answer = word - saysDone1 + 1
	case saysRejected:
		mv.outcome, mv.answer = dedup.Reject, refusal
	default:
		n.procs[p].flights[k-1] = flight{}
		m.emit(&n, "gate %d gives up attempt %d: its late answer is lost", p, k)
		return
	}
	n.procs[p].flights[k-1] = flight{}
	if res := m.apply(&n, mv); res.changed {
		m.wakes(&n, p)
	}
	m.emit(&n, "gate %d stores the late answer of attempt %d: %v", p, k, mv.outcome)
}

// accepts lets an attempt go on without its owner. One that was decided in another way is over with that.
func (m *model) accepts(n *state, p int, k uint8) {
	pr := &n.procs[p]
	if pr.running != k {
		pr.flights[k-1] = flight{}
		return
	}
	pr.flights[k-1] = flight{at: accepted}
}

// settles is the question about an attempt that runs here and has failed, before its failure is believed.
func (m *model) settles(s *state, p int, k uint8) {
	f, n := s.procs[p].flights[k-1], *s
	m.lands(&n, p, k)
	m.emit(&n, "gate %d leaves attempt %d: no reply", p, k)
	if f.answer != 0 {
		n = *s
		m.settle(&n, p, k, f.answer)
		m.emit(&n, "gate %d settles attempt %d: %s", p, k, replyNames[f.answer])
		return
	}
	for _, reply := range m.replies(s) {
		n := *s
		n.procs[p].flights[k-1].answer = reply
		n.questioned(reply, k)
		m.emit(&n, "the app says to gate %d of attempt %d: %s", p, k, replyNames[reply])
	}
}

// settle ends the attempt that runs here with the reply to its owner's question.
func (m *model) settle(n *state, p int, k, reply uint8) {
	waits := n.procs[p].running == k
	if reply == repliesAbsent {
		m.finish(n, p, k, dedup.Abort, 0)
		return
	}
	res := m.learn(n, k, reply)
	if reply == repliesPending {
		m.accepts(n, p, k)
		return
	}
	m.lands(n, p, k)
	if res.err == nil && n.store.final() && waits {
		m.answers(n, n.store.answer)
	}
}
