package model

import (
	"errors"

	"github.com/einlass/einlass/dedup"
)

// initial is the world before the event.
func (m *model) initial() (s state) {
	b := m.budget
	s.left = [2]uint8{b.deliveries, b.odd}
	s.gateKills, s.appKills, s.losses = b.gateKills, b.appKills, b.losses
	s.doubles, s.restores, s.failures = b.doubles, b.restores, b.failures
	return s
}

// steps emits everything that can happen next.
func (m *model) steps(s *state) {
	for p := range m.gates {
		pr := &s.procs[p]
		if !pr.alive() {
			continue
		}
		for bytes := range s.left {
			if s.left[bytes] > 0 {
				m.arrive(s, p, bytes)
			}
			if pr.admitted[bytes] > 0 {
				m.reserve(s, p, bytes)
			}
		}
		if pr.waiting > 0 && (pr.running == 0 || s.store.state != reserved) {
			m.waited(s, p)
		}
		for i := range pr.flights {
			m.flies(s, p, uint8(i+1))
		}
		m.resolve(s, p)
		if s.gateKills > 0 {
			m.killGate(s, p)
		}
	}
	for i := range s.copies {
		m.works(s, i)
	}
	m.calls(s)
	m.mishaps(s)
}

// mishaps are what nobody in the world does.
func (m *model) mishaps(s *state) {
	if s.store.state == reserved && s.store.lease == leaseRuns {
		n := *s
		n.store.lease = leaseOver
		if n.live == n.store.attempt {
			n.live = 0
		}
		m.emit(&n, "the lease of attempt %d ends", s.store.attempt)
	}
	if s.losses > 0 {
		for bytes := range s.left {
			if s.left[bytes] > 0 {
				n := *s
				n.losses--
				n.left[bytes]--
				m.emit(&n, "delivery %d is lost", bytes+1)
			}
		}
	}
	if s.appKills > 0 {
		m.killApp(s)
	}
	if s.restores > 0 {
		m.restore(s)
	}
}

// killGate kills a process. It starts again at once, with nothing but the store, and looks for what is undecided.
func (m *model) killGate(s *state, p int) {
	n := *s
	n.gateKills--
	n.procs[p] = process{tracked: 1}
	if m.off.restartForgets && !n.store.final() {
		n.store = record{}
	}
	if m.off.restartSilent {
		n.procs[p].tracked = 0
	}
	if m.forGood && m.others(s, p) {
		n.procs[p] = process{dead: 1}
	}
	m.restarts(s.store, n.store)
	m.emit(&n, "gate %d is killed", p)
	if asked := s.procs[p].question(); asked != 0 && m.app.fenced && s.row == 0 && s.tokens == 0 {
		n.questioned(repliesFenced, asked)
		m.emit(&n, "gate %d is killed, and its question about attempt %d still reaches the app", p, asked)
	}
}

// others tells whether another process lives.
func (m *model) others(s *state, p int) bool {
	for q := range m.gates {
		if q != p && s.procs[q].alive() {
			return true
		}
	}
	return false
}

// killApp kills the app: what it was at is gone, what it has sent is not.
func (m *model) killApp(s *state) {
	n := *s
	n.appKills--
	for i, c := range n.copies {
		if c.at != onTheWay {
			n.copies[i] = forward{}
		}
	}
	m.emit(&n, "the app is killed")
	if m.app.loses && n.effects > 0 {
		n.effects--
		n.row = 0
		m.emit(&n, "the app is killed, and its database has lost the commit")
	}
}

// restore makes a backup once, or puts it in the store's place. The gate is stopped for that.
func (m *model) restore(s *state) {
	if s.saved == 0 && s.store.found() {
		n := *s
		n.backup, n.saved = s.store, 1
		m.emit(&n, "the store is backed up")
	}
	if s.store != s.backup {
		n := *s
		n.restores--
		n.store, n.backup, n.saved, n.live = s.backup, record{}, 1, 0
		for p := range m.gates {
			n.procs[p] = process{tracked: 1}
		}
		m.emit(&n, "the store is restored from its backup")
	}
}

func errorName(err error) string {
	for _, known := range []struct {
		err  error
		name string
	}{
		{dedup.ErrUnknownEvent, "404 unknown event"}, {dedup.ErrUnknownAttempt, "404 unknown attempt"},
		{dedup.ErrAttemptClosed, "409 attempt closed"}, {dedup.ErrReceiptDiffers, "409 receipt differs"},
	} {
		if errors.Is(err, known.err) {
			return known.name
		}
	}
	if err != nil {
		return err.Error()
	}
	return "200"
}
