package dedup

import "time"

// Absent is the app's answer to the outcome question where it knows nothing of the event.
//
// Without Fenced the app may still commit the attempt: the event is open for its next delivery (T4), and the attempt
// may confirm (rule 1). With Fenced it has durably refused this attempt and every earlier one: they are closed for
// good (T5). An answer about an attempt that is not the newest leaves the event reserved.
type Absent struct {
	Key     Key
	Attempt uint64 // the number of the attempt that was asked about
	Fenced  bool
	At      time.Time
}

// Of is the event.
func (t Absent) Of() Identity { return Identity{Key: t.Key} }

func (t Absent) step(cur Receipt, found bool) (Receipt, bool, Result, error) {
	if err := spoken(cur, found, t.Attempt); err != nil {
		return refused(t, cur, err)
	}
	switch {
	case cur.State.Final():
		return unchanged(Replay, cur)
	case cur.State == StateHeld:
		return unchanged(Held, cur) // set aside for a person: T9 only
	case t.Attempt <= cur.Closed:
		return free(cur, t.Attempt, t.At)
	case !t.Fenced:
		if t.Attempt == cur.Attempt && cur.State == StateReserved {
			cur.InDoubtBefore = true // its end is still unknown
		}
		return free(cur, t.Attempt, t.At)
	}
	cur.Closed = t.Attempt
	if t.Attempt == cur.Attempt {
		cur.State = StateOpen // T5
		cur.Lease = time.Time{}
		cur.InDoubtBefore = false // no attempt is left whose end is unknown
	}
	return changed(standing(cur), cur, t.At)
}

// Extend renews the lease of an event's newest attempt: the app says that it is still at work. It shortens none and
// moves no state. Of an older attempt, and of an event that is not reserved, it changes nothing.
type Extend struct {
	Key     Key
	Attempt uint64
	Lease   time.Duration // from At
	At      time.Time
}

// Of is the event.
func (t Extend) Of() Identity { return Identity{Key: t.Key} }

func (t Extend) step(cur Receipt, found bool) (Receipt, bool, Result, error) {
	if err := spoken(cur, found, t.Attempt); err != nil {
		return refused(t, cur, err)
	}
	if cur.State.Final() {
		return unchanged(Replay, cur)
	}
	lease := stamp(t.At.Add(t.Lease))
	if cur.State != StateReserved || t.Attempt != cur.Attempt || !lease.After(cur.Lease) {
		return unchanged(standing(cur), cur)
	}
	cur.Lease = lease
	return changed(InDoubt, cur, t.At)
}
