package deduptest

import (
	"fmt"
	"time"

	"github.com/einlass/einlass/dedup"
)

// event is one of an era's events, with one of its bodies.
func event(era, id, body int) dedup.Identity {
	return Event(fmt.Sprintf("%d-%c", era, 'a'+id), fmt.Sprintf("%d-%d", era, body))
}

// everyone is every event there may be by now, each with its own body and a guard.
func (h *history) everyone() (all []dedup.Identity) {
	for era := range h.era + 1 {
		for id := range eraIDs {
			e := event(era, id, id%bodies)
			e.Guard = true
			all = append(all, e)
		}
	}
	return all
}

func (h *history) identity() dedup.Identity {
	era := h.era
	if h.random.IntN(20) == 0 {
		era = h.random.IntN(h.era + 1)
	}
	n := h.random.IntN(eraIDs)
	if h.long(era) && h.random.IntN(40) > 0 {
		n = 0
	}
	body := n % bodies
	if h.random.IntN(8) == 0 {
		body = h.random.IntN(bodies)
	}
	id := event(era, n, body)
	id.Guard = h.random.IntN(2) == 0
	id.ByID = h.random.IntN(8) == 0
	if h.random.IntN(8) == 0 {
		id.Fingerprint = dedup.Digest{byte(h.random.IntN(3))}
	}
	if h.random.IntN(30) == 0 {
		id.Source = "another shop"
	}
	return id
}

// transition is a random step of an event of which the receipt is known, or zero.
func (h *history) transition(id dedup.Identity, known dedup.Receipt) dedup.Transition {
	key, attempt := id.Key, h.attempt(known)
	if known.Attempt > 0 && h.random.IntN(4) > 0 {
		key = known.Key // of a guarded identity, the event that it is
	}
	switch n := h.random.IntN(100); {
	case n < 40:
		r := Reserve(id, h.after, dedup.InDoubtPolicy(h.random.IntN(4))) // one of them is unknown
		r.Owner[1] = byte(h.random.IntN(3))
		if h.long(h.era) { // nobody holds it, or it would have no further attempt
			r.Lease /= 10
			r.InDoubt = []dedup.InDoubtPolicy{dedup.Redeliver, dedup.Redeliver, dedup.Ask}[h.random.IntN(3)]
		}
		return r
	case n < 44 && !h.long(h.era):
		return dedup.Hold{Key: key, At: Start.Add(h.after)}
	case n < 60:
		f := Finish(key, attempt, h.outcome(), h.after)
		f.Answer = h.answer(known, attempt)
		return f
	case n < 80:
		c := Confirm(known, attempt, h.outcome(), h.after)
		c.Key, c.Answer = key, h.answer(known, attempt)
		if h.random.IntN(10) == 0 {
			c.Token[h.random.IntN(len(c.Token))] ^= 1
		}
		return c
	case n < 90:
		return Absent(key, attempt, h.random.IntN(3) == 0, h.after)
	default:
		e := Extend(key, attempt, h.after)
		e.Lease = time.Duration(h.random.Int64N(int64(2 * Lease)))
		return e
	}
}

// attempt is mostly the newest or one before it, sometimes one that was never made.
func (h *history) attempt(known dedup.Receipt) uint64 {
	n := known.Attempt
	switch made := len(known.Tokens); {
	case h.random.IntN(20) == 0:
		n++
	case made > 0 && h.random.IntN(3) == 0:
		n = known.Tokens[h.random.IntN(made)].Attempt
	}
	return n
}

func (h *history) outcome() dedup.Outcome {
	decided := 5
	if h.long(h.era) {
		decided = 200
	}
	switch {
	case h.random.IntN(200) == 0:
		return dedup.Reject + 1 // there is none
	case h.random.IntN(decided) == 0:
		return dedup.Outcome(1 + h.random.IntN(2))
	}
	return dedup.Abort
}

// answer is the attempt's own, the one that stands, or another; some are longer than a page of a file.
func (h *history) answer(known dedup.Receipt, attempt uint64) dedup.Answer {
	a := Answer(attempt)
	switch h.random.IntN(8) {
	case 0:
		a.Body = make([]byte, h.random.IntN(10_000))
	case 1:
		a = dedup.Answer{Status: 299, BodyDropped: true}
	case 2, 3, 4:
		if known.Answer != nil {
			a = dedup.Answer{Status: known.Answer.Status, Header: known.Answer.Header, Body: known.Answer.Body, BodyDropped: known.Answer.BodyDropped}
		}
	}
	return a
}
