package dedup

import "time"

// InDoubtPolicy is what becomes of an attempt whose end nobody saw, once its lease is over.
type InDoubtPolicy uint8

// The policies.
const (
	Redeliver     InDoubtPolicy = iota // forward again, flagged in doubt (T7)
	HoldForPerson                      // 503 until a person resolves it (T8)
	Ask                                // 503 until the app has said what became of it; see [Asker]
)

// Reserve makes a delivery the event's attempt, if the event's state allows one: T1, T2, T7, and T8 where the
// policy says so. Only the process that knows that no attempt of the event is running in it may submit one: a
// receipt that is reserved counts as in doubt here.
type Reserve struct {
	Identity Identity
	At       time.Time
	Lease    time.Duration
	InDoubt  InDoubtPolicy
	Owner    [16]byte // process that reserves
	Seed     Seed     // the store's, from which the new attempt's token is made
}

// Of is the event as the delivery names it.
func (t Reserve) Of() Identity { return t.Identity }

func (t Reserve) step(cur Receipt, found bool) (Receipt, bool, Result, error) {
	id := t.Identity.normal()
	if !found {
		first := Receipt{
			Key: id.Key, Type: id.Type, Digest: id.Digest, Fingerprint: id.Fingerprint,
			FirstSeen: stamp(t.At),
		}
		return t.reserve(first) // T1
	}
	if !id.sameContent(cur.Digest, cur.Fingerprint) {
		return unchanged(Conflict, cur) // I5: the first content stands, in every state
	}
	switch cur.State {
	case StateOpen:
		return t.reserve(cur) // T2
	case StateReserved:
		return t.inDoubt(cur)
	case StateCommitted, StateRejected:
		return unchanged(Replay, cur)
	case StateHeld:
		return unchanged(Held, cur)
	default: // queued, dead: the inbox delivers these, never a delivery
		return refused(t, cur, ErrNotAllowed)
	}
}

// inDoubt decides about a reservation whose attempt does not run here: its process is gone, or its end was not
// seen. While the lease runs, the app may still be at work.
func (t Reserve) inDoubt(cur Receipt) (Receipt, bool, Result, error) {
	switch {
	case t.At.Before(cur.Lease), t.InDoubt == Ask: // the app's answer moves it, nothing else
		return unchanged(InDoubt, cur)
	case t.InDoubt == Redeliver:
		cur.InDoubtBefore = true
		return t.reserve(cur) // T7
	default: // HoldForPerson, and any policy this version does not know: never a silent second attempt
		cur.State = StateHeld
		cur.InDoubtBefore = true
		return changed(Held, cur, t.At) // T8
	}
}

// reserve adds an attempt. Its number grows over the last one and, where the clock allows, over any number that a
// store restored from a backup has forgotten (C9 of the protocol notes).
func (t Reserve) reserve(r Receipt) (Receipt, bool, Result, error) {
	r.State = StateReserved
	r.Attempt = max(r.Attempt+1, uint64(max(t.At.UnixMilli(), 0)))
	r.Attempts++
	r.Owner = t.Owner
	r.Lease = stamp(t.At.Add(t.Lease))
	kept := r.Tokens[max(0, len(r.Tokens)-(MaxTokens-1)):]
	token := AttemptToken{r.Attempt, HashToken(t.Seed.Token(r.Key, r.Attempt))}
	r.Tokens = append(append(make([]AttemptToken, 0, len(kept)+1), kept...), token)
	return changed(Forward, r, t.At)
}
