package model

import "github.com/einlass/einlass/dedup"

// toResolve tells whether the resolver of a process has something to do about the event: see dedup.Gate's resolve. An
// event about which it has nothing to do is forgotten, and comes back with the end of the attempt that runs.
func (m *model) toResolve(s *state, pr *process) bool {
	r := s.store
	switch {
	case !r.found(), !r.mayConfirm(), r.state == held, pr.running != 0:
		return false
	case r.state == open && m.off.deafOnceOpen:
		return false
	}
	return m.policy == dedup.Ask || m.policy == dedup.HoldForPerson && r.state == reserved
}

// resolve is the resolver's turn: a question, or what the policy has instead.
func (m *model) resolve(s *state, p int) {
	pr := s.procs[p]
	switch {
	case pr.asked != 0:
		m.resolving(s, p)
	case pr.tracked == 0:
	case m.policy == dedup.HoldForPerson:
		if s.store.lease == leaseOver {
			n := *s
			n.procs[p].asked, n.procs[p].reply = s.store.attempt, holds
			m.emit(&n, "gate %d finds the lease of attempt %d over", p, s.store.attempt)
		}
	default:
		n := *s
		n.procs[p].asked = s.store.attempt
		m.emit(&n, "gate %d asks about attempt %d", p, s.store.attempt)
	}
}

// resolving is a question that is under way, or what the policy has instead.
func (m *model) resolving(s *state, p int) {
	pr, n := s.procs[p], *s
	n.procs[p].asked, n.procs[p].reply = 0, 0
	if pr.reply == holds {
		m.apply(&n, move{kind: hold})
		m.emit(&n, "gate %d sets the event aside for a person: %v", p, dedup.State(n.store.state))
		return
	}
	m.emit(&n, "gate %d has asked about attempt %d: no reply", p, pr.asked)
	if pr.reply != 0 {
		if res := m.learn(&n, pr.asked, pr.reply); res.changed && n.store.final() {
			m.wakes(&n, p)
		}
		m.emit(&n, "gate %d hears about attempt %d: %s", p, pr.asked, replyNames[pr.reply])
		return
	}
	for _, reply := range m.replies(s) {
		n := *s
		n.procs[p].reply = reply
		n.questioned(reply, pr.asked)
		m.emit(&n, "the app says to gate %d of attempt %d: %s", p, pr.asked, replyNames[reply])
	}
}

// learn applies a reply about an attempt.
func (m *model) learn(n *state, attempt, reply uint8) moved {
	mv := move{attempt: attempt}
	switch reply {
	case repliesDone1, repliesDone2:
		mv.kind, mv.outcome, mv.answer = finish, dedup.Commit, reply-repliesDone1+1
	case repliesRejected:
		mv.kind, mv.outcome, mv.answer = finish, dedup.Reject, refusal
	case repliesAbsent:
		mv.kind = unknown
	case repliesFenced:
		mv.kind = fence
	case repliesPending:
		mv.kind = extend
	}
	return m.apply(n, mv)
}
