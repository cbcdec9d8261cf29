package dedup

import "time"

// Hold sets an event aside for a person, once its lease is over (T8). Held already: nothing happens.
type Hold struct {
	Key Key
	At  time.Time
}

// Of is the event.
func (t Hold) Of() Identity { return Identity{Key: t.Key} }

func (t Hold) step(cur Receipt, found bool) (Receipt, bool, Result, error) {
	switch {
	case !found:
		return refused(t, cur, ErrUnknownEvent)
	case cur.State == StateHeld:
		return unchanged(Held, cur)
	case cur.State == StateReserved && !t.At.Before(cur.Lease):
		cur.State = StateHeld
		cur.InDoubtBefore = true
		return changed(Held, cur, t.At)
	default:
		return refused(t, cur, ErrNotAllowed)
	}
}
