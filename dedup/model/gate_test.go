package model

import (
	"errors"

	"github.com/einlass/einlass/dedup"
)

// sameBytes tells whether a delivery's bytes are those the receipt has.
func (m *model) sameBytes(r record, digest uint8) bool { return r.digest == digest || m.off.unbound }

// arrive is a delivery that comes to a process, up to the verdict of its look-up.
func (m *model) arrive(s *state, p int, bytes int) {
	n := *s
	n.left[bytes]--
	pr, r, digest := &n.procs[p], s.store, uint8(bytes+1)
	switch {
	case !r.found():
		m.admit(&n, p, bytes)
	case !m.sameBytes(r, digest):
		m.emit(&n, "delivery %d to gate %d: other content, 409", digest, p)
	case r.final():
		m.answers(&n, r.answer)
		m.emit(&n, "delivery %d to gate %d: answered from the receipt", digest, p)
	case r.state == open:
		m.admit(&n, p, bytes)
	case r.state == held:
		m.emit(&n, "delivery %d to gate %d: held, 503", digest, p)
	case pr.running != 0 && m.off.eagerReplay:
		m.answers(&n, 1)
		m.emit(&n, "delivery %d to gate %d: answered before the attempt's end", digest, p)
	case pr.running != 0 && !m.off.noFlights:
		pr.waiting++
		m.emit(&n, "delivery %d to gate %d: waits for the running attempt", digest, p)
	case r.lease == leaseOver && m.policy != dedup.Ask:
		m.admit(&n, p, bytes)
	default:
		m.doubt(s, p, bytes)
	}
}

// doubt is a delivery that meets an event in doubt.
func (m *model) doubt(s *state, p int, bytes int) {
	n := *s
	if m.asks() {
		n.procs[p].tracked = 1
		if s.procs[p].tracked == 0 {
			m.emit(&n, "delivery %d to gate %d: in doubt, has the app asked and waits", bytes+1, p)
		}
	}
	n.left[bytes]--
	m.emit(&n, "delivery %d to gate %d: in doubt, 503", bytes+1, p)
}

func (m *model) admit(n *state, p, bytes int) {
	if m.off.openStays && n.store.state == open {
		m.emit(n, "delivery %d to gate %d: open, 503", bytes+1, p)
		return
	}
	n.procs[p].admitted[bytes]++
	if m.off.staleReserve {
		n.procs[p].seen = n.store.state
	}
	m.emit(n, "delivery %d to gate %d: looked up, may be reserved", bytes+1, p)
}

// reserve is dedup.Gate's Reserve: an attempt that runs here is met before the store is.
func (m *model) reserve(s *state, p, bytes int) {
	n := *s
	pr, digest := &n.procs[p], uint8(bytes+1)
	pr.admitted[bytes]--
	if pr.running != 0 && !m.off.noFlights {
		if !m.sameBytes(s.store, digest) {
			m.emit(&n, "gate %d reserves for delivery %d: other content, 409", p, digest)
			return
		}
		pr.waiting++
		m.emit(&n, "gate %d reserves for delivery %d: it waits for the running attempt", p, digest)
		return
	}
	if m.off.staleReserve {
		n.store = stale(n.store, pr.seen)
	}
	res := m.apply(&n, move{kind: reserve, digest: digest, policy: m.policy, byID: m.off.unbound})
	switch {
	case res.err != nil:
		pr.tracked = 1 // it may be reserved
		m.emit(&n, "gate %d reserves for delivery %d: %s", p, digest, errorName(res.err))
	case res.kind == dedup.Forward:
		k := n.store.attempt
		m.forwards(s, p, k)
		pr.running, pr.flights[k-1] = k, flight{at: ready, digest: digest}
		if m.off.forwardFirst {
			n.store, n.lasted = s.store, s.lasted
			m.send(&n, p, k, 1)
		}
		m.emit(&n, "gate %d reserves attempt %d for delivery %d", p, k, digest)
	case res.kind == dedup.Replay:
		m.answers(&n, n.store.answer)
		m.emit(&n, "gate %d reserves for delivery %d: answered from the receipt", p, digest)
	default:
		m.emit(&n, "gate %d reserves for delivery %d: %v", p, digest, res.kind)
	}
}

// stale is what a handler has read, in the place of what is stored.
func stale(r record, seen uint8) record {
	switch seen {
	case absent:
		return record{}
	case open:
		r.state, r.lease, r.answer, r.decided = open, noLease, 0, 0
	}
	return r
}

// waited is the end of a handler's waiting: it looks again.
func (m *model) waited(s *state, p int) {
	n := *s
	n.procs[p].waiting--
	if !s.store.final() {
		m.emit(&n, "a handler of gate %d has waited: %v, 503", p, dedup.State(s.store.state))
		return
	}
	m.answers(&n, s.store.answer)
	m.emit(&n, "a handler of gate %d has waited: answered from the receipt", p)
}

// confirmed is a callback that reaches a process.
func (m *model) confirmed(s *state, p int, attempt uint8, outcome dedup.Outcome, receipt uint8) {
	n := *s
	pr, bit := &n.procs[p], callbackBit(outcome, receipt)
	n.callbacks[attempt-1] &^= bit
	if m.off.ackFirst {
		m.acknowledges(&n, outcome)
	}
	res := m.apply(&n, move{kind: confirm, attempt: attempt, outcome: outcome, answer: receipt})
	if errors.Is(res.err, errStore) {
		n.callbacks[attempt-1] |= bit // the app will repeat it
		m.emit(&n, "gate %d hears from attempt %d: %v (%s)", p, attempt, outcome, errorName(res.err))
		return
	}
	if res.changed {
		m.wakes(&n, p)
	}
	if res.err == nil {
		m.acknowledges(&n, outcome)
		if res.kind == dedup.Again {
			pr.tracked = 1
		}
	}
	m.emit(&n, "gate %d hears from attempt %d: %v (%s)", p, attempt, outcome, errorName(res.err))
	if s.losses > 0 {
		n.callbacks[attempt-1] |= bit
		n.losses--
		m.emit(&n, "gate %d hears from attempt %d: %v (%s), and the app does not hear that", p, attempt, outcome, errorName(res.err))
	}
}

// acknowledges tells the app that its callback was taken.
func (m *model) acknowledges(n *state, outcome dedup.Outcome) {
	if outcome == dedup.Commit && n.store.state != committed || outcome == dedup.Reject && n.store.state != rejected {
		m.breaks(ackRecorded)
	}
}

// wakes tells the attempt that runs in a process that the event was decided in another way: nobody waits for it now,
// and its sender is answered from the receipt.
func (m *model) wakes(n *state, p int) {
	pr := &n.procs[p]
	if pr.running == 0 {
		return
	}
	if f := &pr.flights[pr.running-1]; f.at == accepted {
		*f = flight{}
	}
	pr.running = 0
	if n.store.final() {
		m.answers(n, n.store.answer)
	}
}
