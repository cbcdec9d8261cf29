package model

import (
	"testing"

	"github.com/einlass/einlass/dedup"
)

// limits are deployments in which no gate can keep the promise that is named: what the README says of them is true.
func limits() []variant {
	ask, again, person := dedup.Ask, dedup.Redeliver, dedup.HoldForPerson
	row, fenced := app{rows: eventRow}, app{rows: eventRow, fenced: true}
	restored := budget{deliveries: 2, losses: 1, restores: 1}
	odd := usual
	odd.odd = 1
	return []variant{
		{name: "L0, redeliver: the effect twice", policy: again, budget: usual, want: effectOnce},
		{name: "L1, redeliver: a callback is no row", app: app{callback: true}, policy: again, budget: usual, want: effectOnce},
		{name: "L1, ask: an answer without a row", policy: ask, budget: usual, want: effectOnce},
		{name: "L0, hold: a forward that is sent twice", app: app{plain: true}, policy: person,
			budget: budget{deliveries: 1, doubles: 1}, want: effectOnce},
		{name: "row on the token, ask, not fenced", app: app{rows: tokenRow}, policy: ask, budget: usual, want: effectOnce},
		{name: "row on the token, ask, fenced, aborts are not", app: app{rows: tokenRow, fenced: true}, policy: ask, budget: usual, want: effectOnce},
		{name: "row on the token, ask, fenced, store restored", app: app{rows: tokenRow, fenced: true, fencedAborts: true}, policy: ask,
			budget: restored, want: effectOnce},
		{name: "L2, hold: nobody is asked", app: row, policy: person, budget: usual, want: learns},
		{name: "L2, redeliver: nobody is asked", app: row, policy: again, budget: usual, want: learns},
		{name: "L2, redeliver, callback: it may be lost", app: app{rows: eventRow, callback: true}, policy: again, budget: usual, want: learns},
		{name: "L2, hold: a person decides", app: row, policy: person, budget: usual, without: []invariant{learns}, want: finishes},
		{name: "L3, ask: the app's database loses its commit", app: app{rows: eventRow, loses: true}, policy: ask, budget: usual, want: noFalseDone},
		{name: "L3, ask: other bytes came first", app: row, policy: ask, budget: odd, want: finishes},
		{name: "L3, ask, a backup in which nothing is left to ask", app: row, policy: ask, budget: restored, strict: true, want: learns},
		{name: "L3, ask, two processes, one never comes back", app: fenced, policy: ask, gates: 2, forGood: true, budget: usual, want: learns},
	}
}

func TestLimitsAreWhereTheyAreSaidToBe(t *testing.T) {
	t.Parallel()
	for _, v := range limits() {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			out := explore(v)
			t.Log(out.line())
			if out.broken != v.want {
				t.Fatalf("must break %v and breaks %v\n%s", v.want, out.broken, out.list())
			}
			t.Log("\n" + out.list())
		})
	}
}
