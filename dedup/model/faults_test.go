package model

import (
	"errors"
	"testing"

	"github.com/einlass/einlass/dedup"
)

// faults are gates with a rule missing, each in a world where the real one holds.
func faults() []variant {
	ask, again, person := dedup.Ask, dedup.Redeliver, dedup.HoldForPerson
	row := app{rows: eventRow}
	callback := app{rows: eventRow, callback: true}
	fenced := app{rows: eventRow, fenced: true, callback: true}
	token := app{rows: tokenRow, fenced: true, fencedAborts: true}
	unasked := []invariant{learns}
	restored := budget{deliveries: 2, losses: 1, restores: 1}
	odd := budget{deliveries: 1, odd: 1}
	return []variant{
		// The order of writing and speaking.
		{name: "C1 forwards before the reservation is durable", app: row, policy: ask, off: switches{forwardFirst: true}, want: reserveFirst},
		{name: "C2 answers before the receipt is durable", app: row, policy: ask, off: switches{answerFirst: true}, want: ackRecorded},
		{name: "answers a callback before the receipt is durable", app: callback, policy: ask, off: switches{ackFirst: true}, want: ackRecorded},
		{name: "answers a repeat before the attempt's end", app: row, policy: ask, off: switches{eagerReplay: true}, want: ackRecorded},
		{name: "C3 looks up and reserves in two transactions", app: row, policy: ask, off: switches{staleReserve: true}, want: oneAttempt},
		{name: "C3 again, its other harm", app: row, policy: ask, off: switches{staleReserve: true}, without: []invariant{oneAttempt}, want: oneReceipt},
		{name: "the store loses what was written", app: row, policy: ask, off: switches{restartForgets: true}, want: monotone},

		// Who may be forwarded, and when.
		{name: "C4 takes other bytes for the event", app: row, policy: ask, budget: odd, off: switches{unbound: true},
			without: []invariant{finishes}, want: bytesBound},
		{name: "knows nothing of what runs in it", app: row, policy: again, off: switches{noFlights: true}, without: unasked, want: oneAttempt},
		{name: "forwards again before the lease's end", app: row, policy: again, step: leaseIgnored, without: unasked, want: oneAttempt},
		{name: "C9 numbers turned back by a restore", app: row, policy: ask, budget: restored, step: numbersByCount, want: oneAttempt},
		{name: "C9 again, for a fenced app", app: fenced, policy: ask, budget: restored, step: numbersByCount,
			without: []invariant{oneAttempt, learns}, want: finishes},
		{name: "hold is skipped", app: app{plain: true}, policy: person, budget: budget{deliveries: 2, gateKills: 1, appKills: 1, losses: 1},
			step: holdSkipped, without: []invariant{learns, finishes}, want: effectOnce},
		{name: "an open event stays open", app: row, policy: ask, off: switches{openStays: true}, want: finishes},

		// What a word of the app means.
		{name: "C5 takes a time-out for aborted", app: token, policy: ask, off: switches{timeoutFrees: true}, want: effectOnce},
		{name: "takes accepted for committed", app: app{rows: eventRow, callback: true, early: true}, policy: ask, off: switches{acceptedCommits: true}, want: noFalseDone},
		{name: "takes aborted for committed", app: row, policy: ask, step: abortedCommits, want: noFalseDone},
		{name: "takes rejected for committed", app: app{rows: eventRow, rejects: true}, policy: ask, step: rejectedCommits, want: noFalseDone},
		{name: "takes pending for absent", app: app{rows: eventRow, early: true}, policy: ask, step: pendingFrees, want: oneAttempt},
		{name: "an older attempt's aborted frees a newer one", app: callback, policy: ask, budget: budget{deliveries: 3}, step: olderAbortFrees, want: oneAttempt},

		// Rule 1: whose word still counts.
		{name: "C6 absent closes the attempt", app: row, policy: ask, step: absentCloses, want: learns},
		{name: "C6 again, aborted closes the attempt", app: app{rows: eventRow, careless: true}, policy: ask, step: abortedCloses, want: learns},
		{name: "C7 a lease that is over refuses the outcome", app: callback, policy: ask, step: lateRefused, want: learns},
		{name: "only the newest attempt may confirm", app: callback, policy: ask, step: onlyNewest, want: learns},
		{name: "C8 a later confirmation replaces the receipt", app: app{callback: true}, policy: again, step: laterReplaces,
			without: []invariant{effectOnce, learns, finishes}, want: oneReceipt},
		{name: "a closed attempt may confirm", app: fenced, policy: ask, budget: budget{deliveries: 2, doubles: 1}, step: closedConfirms, want: closedStays},
		{name: "a new attempt opens what was closed", app: fenced, policy: ask, step: closedForgotten, want: closedStays},

		// Rule 2: asking.
		{name: "C10 asks no more once the event is open", app: row, policy: ask, off: switches{deafOnceOpen: true}, want: learns},
		{name: "does not look for undecided events when it starts", app: row, policy: ask, off: switches{restartSilent: true}, want: learns},
	}
}

func TestEveryFaultIsCaught(t *testing.T) {
	t.Parallel()
	for _, v := range faults() {
		if v.budget == (budget{}) {
			v.budget = budget{deliveries: 2, gateKills: 1, losses: 1}
		}
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			sound := v
			sound.off, sound.step = switches{}, nil
			if out := explore(sound); out.broken != 0 {
				t.Fatalf("without the fault it breaks %v:\n%s", out.broken, out.list())
			}
			out := explore(v)
			t.Log(out.line())
			if out.broken != v.want {
				t.Fatalf("must break %v and breaks %v\n%s", v.want, out.broken, out.list())
			}
			t.Log("\n" + out.list())
		})
	}
}

func TestEveryInvariantCatchesAFault(t *testing.T) {
	t.Parallel()
	caught := map[invariant]int{}
	for _, v := range faults() {
		caught[v.want]++
	}
	for _, i := range []invariant{reserveFirst, ackRecorded, oneReceipt, bytesBound, oneAttempt, effectOnce, noFalseDone, closedStays, learns, finishes, monotone} {
		if caught[i] == 0 {
			t.Errorf("no fault shows that %v is checked", i)
		}
	}
}

// Faults of the rules themselves, around the real ones.

// leaseIgnored takes every lease for over.
func leaseIgnored(t dedup.Transition, cur dedup.Receipt, found bool) (dedup.Receipt, bool, dedup.Result, error) {
	if _, ok := t.(dedup.Reserve); ok {
		cur.Lease = noon.Add(-lease)
	}
	return dedup.Step(t, cur, found)
}

// numbersByCount numbers attempts without the clock.
func numbersByCount(t dedup.Transition, cur dedup.Receipt, found bool) (dedup.Receipt, bool, dedup.Result, error) {
	if r, ok := t.(dedup.Reserve); ok {
		r.At = noon
		t = r
	}
	return dedup.Step(t, cur, found)
}

func holdSkipped(t dedup.Transition, cur dedup.Receipt, found bool) (dedup.Receipt, bool, dedup.Result, error) {
	switch r := t.(type) {
	case dedup.Reserve:
		r.InDoubt = dedup.Redeliver
		t = r
	case dedup.Hold:
		return refuse(cur)
	}
	return dedup.Step(t, cur, found)
}

func abortedCommits(t dedup.Transition, cur dedup.Receipt, found bool) (dedup.Receipt, bool, dedup.Result, error) {
	if f, ok := t.(dedup.Finish); ok && f.Outcome == dedup.Abort {
		f.Outcome, f.Answer = dedup.Commit, answerOf(1)
		t = f
	}
	return dedup.Step(t, cur, found)
}

func rejectedCommits(t dedup.Transition, cur dedup.Receipt, found bool) (dedup.Receipt, bool, dedup.Result, error) {
	if f, ok := t.(dedup.Finish); ok && f.Outcome == dedup.Reject {
		f.Outcome = dedup.Commit
		t = f
	}
	return dedup.Step(t, cur, found)
}

func pendingFrees(t dedup.Transition, cur dedup.Receipt, found bool) (dedup.Receipt, bool, dedup.Result, error) {
	if e, ok := t.(dedup.Extend); ok {
		t = dedup.Absent{Key: e.Key, Attempt: e.Attempt, At: e.At}
	}
	return dedup.Step(t, cur, found)
}

func olderAbortFrees(t dedup.Transition, cur dedup.Receipt, found bool) (dedup.Receipt, bool, dedup.Result, error) {
	if c, ok := t.(dedup.Confirm); ok && c.Outcome == dedup.Abort && cur.Attempt != 0 {
		c.Token = hashes[attemptOf(cur.Attempt)]
		t = c
	}
	return dedup.Step(t, cur, found)
}

func absentCloses(t dedup.Transition, cur dedup.Receipt, found bool) (dedup.Receipt, bool, dedup.Result, error) {
	if a, ok := t.(dedup.Absent); ok {
		a.Fenced = true
		t = a
	}
	return dedup.Step(t, cur, found)
}

func abortedCloses(t dedup.Transition, cur dedup.Receipt, found bool) (dedup.Receipt, bool, dedup.Result, error) {
	if f, ok := t.(dedup.Finish); ok && f.Outcome == dedup.Abort {
		t = dedup.Absent{Key: f.Key, Attempt: f.Attempt, Fenced: true, At: f.At}
	}
	return dedup.Step(t, cur, found)
}

// lateRefused lets a lease end the attempt's right to speak.
func lateRefused(t dedup.Transition, cur dedup.Receipt, found bool) (dedup.Receipt, bool, dedup.Result, error) {
	late := cur.State == dedup.StateReserved && cur.Lease.Before(noon)
	switch t.(type) {
	case dedup.Finish, dedup.Confirm:
		if late {
			return refuse(cur)
		}
	}
	return dedup.Step(t, cur, found)
}

func onlyNewest(t dedup.Transition, cur dedup.Receipt, found bool) (dedup.Receipt, bool, dedup.Result, error) {
	if c, ok := t.(dedup.Confirm); ok && cur.Attempt != 0 && c.Token != hashes[attemptOf(cur.Attempt)] {
		return refuse(cur)
	}
	return dedup.Step(t, cur, found)
}

func laterReplaces(t dedup.Transition, cur dedup.Receipt, found bool) (dedup.Receipt, bool, dedup.Result, error) {
	if c, ok := t.(dedup.Confirm); ok && c.Outcome == dedup.Commit && cur.State.Final() {
		cur.State = dedup.StateReserved
	}
	return dedup.Step(t, cur, found)
}

func closedConfirms(t dedup.Transition, cur dedup.Receipt, found bool) (dedup.Receipt, bool, dedup.Result, error) {
	closed := cur.Closed
	switch t.(type) {
	case dedup.Finish, dedup.Confirm:
		cur.Closed = 0
	}
	next, write, res, err := dedup.Step(t, cur, found)
	next.Closed = max(next.Closed, closed)
	return next, write, res, err
}

func closedForgotten(t dedup.Transition, cur dedup.Receipt, found bool) (dedup.Receipt, bool, dedup.Result, error) {
	next, write, res, err := dedup.Step(t, cur, found)
	if _, ok := t.(dedup.Reserve); ok && write {
		next.Closed = 0
	}
	return next, write, res, err
}

func refuse(cur dedup.Receipt) (dedup.Receipt, bool, dedup.Result, error) {
	return cur, false, dedup.Result{Receipt: cur}, errors.New("refused by a fault")
}
