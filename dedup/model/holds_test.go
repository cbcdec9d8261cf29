package model

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/einlass/einlass/dedup"
)

var budgetFlag = flag.String("model.budget", "",
	"explore the variants that hold with this many `deliveries,gate kills,app kills,losses,doubled forwards`: 3,1,1,1,1 say")

// holding are the worlds in which the gate keeps all it promises.
func holding() []variant {
	ask, again, person := dedup.Ask, dedup.Redeliver, dedup.HoldForPerson
	row := app{rows: eventRow}
	callback := app{rows: eventRow, callback: true}
	fenced := app{rows: eventRow, fenced: true}
	more := budget{deliveries: 3, gateKills: 1, losses: 1, doubles: 1}
	odd := usual
	odd.odd = 1
	restored := budget{deliveries: 2, losses: 1, doubles: 1, restores: 1}
	few := budget{deliveries: 2, odd: 1, doubles: 1}
	failing := budget{deliveries: 2, gateKills: 1, losses: 1, failures: 2}
	// Without the question an app that has answered nobody is heard only at the next delivery.
	unasked := []invariant{learns}
	return []variant{
		{name: "L3, ask", app: row, policy: ask, budget: usual},
		{name: "L3, ask, three deliveries", app: row, policy: ask, budget: more},
		{name: "L3, ask, fails without a verdict", app: app{rows: eventRow, plain: true}, policy: ask, budget: usual},
		{name: "L3, ask, careless aborts", app: app{rows: eventRow, careless: true}, policy: ask, budget: usual},
		{name: "L3, ask, pending", app: app{rows: eventRow, early: true}, policy: ask, budget: usual},
		{name: "L3, ask, callback", app: callback, policy: ask, budget: usual},
		{name: "L3, ask, callback, accepted first", app: app{rows: eventRow, callback: true, early: true}, policy: ask,
			budget: budget{deliveries: 2, gateKills: 1, losses: 1, doubles: 1}},
		{name: "L3, ask, rejections", app: app{rows: eventRow, rejects: true, plain: true}, policy: ask, budget: usual},
		{name: "L3, ask, rejections by callback", app: app{rows: eventRow, rejects: true, callback: true}, policy: ask,
			budget: budget{deliveries: 2, gateKills: 1, losses: 1, doubles: 1}},
		{name: "L3, ask, fenced", app: fenced, policy: ask, budget: usual},
		{name: "L3, ask, fenced, callback", app: app{rows: eventRow, fenced: true, callback: true}, policy: ask, budget: usual},
		{name: "L3, ask, other bytes", app: row, policy: ask, budget: odd, without: []invariant{finishes}},
		{name: "L3, ask, two processes", app: row, policy: ask, gates: 2, budget: budget{deliveries: 2, gateKills: 1, losses: 1, doubles: 1}},
		{name: "L3, ask, two processes, fenced, callback", app: app{rows: eventRow, fenced: true, callback: true}, policy: ask, gates: 2,
			budget: budget{deliveries: 2, gateKills: 1, losses: 1}},
		{name: "L3, ask, store restored", app: row, policy: ask, budget: restored},
		{name: "L3, ask, store restored, fenced, callback", app: app{rows: eventRow, fenced: true, callback: true}, policy: ask, budget: restored},
		{name: "row on the token, ask, fenced, fenced aborts", app: app{rows: tokenRow, fenced: true, fencedAborts: true}, policy: ask, budget: usual},
		{name: "L2, redeliver", app: row, policy: again, budget: usual, without: unasked},
		{name: "L2, redeliver, callback", app: callback, policy: again, budget: usual, without: unasked},
		{name: "L2, redeliver, two processes", app: callback, policy: again, gates: 2, budget: usual, without: unasked},
		{name: "L2, hold, callback", app: callback, policy: person, budget: usual, without: []invariant{learns, finishes}},
		{name: "L3, ask, fenced at times, rejections, pending, callback", policy: ask, budget: budget{deliveries: 2, odd: 1}, without: []invariant{finishes},
			app: app{rows: eventRow, fenced: true, unsure: true, rejects: true, early: true, callback: true}},
		{name: "L3, ask, fenced at times, rejections, pending", policy: ask, budget: few, without: []invariant{finishes},
			app: app{rows: eventRow, fenced: true, unsure: true, rejects: true, early: true}},
		{name: "L3, ask, store restored, fenced, rejections by callback", app: app{rows: eventRow, fenced: true, rejects: true, callback: true}, policy: ask,
			budget: budget{deliveries: 2, losses: 1, restores: 1}},
		{name: "L3, ask, callback and verdict", app: app{rows: eventRow, callback: true, verdicts: true}, policy: ask, budget: usual},
		{name: "L2, hold, callback and verdict, rejections", app: app{rows: eventRow, callback: true, verdicts: true, rejects: true}, policy: person,
			budget: usual, without: []invariant{learns, finishes}},
		{name: "L2, hold, two processes, rejections", app: app{rows: eventRow, rejects: true}, policy: person, gates: 2, budget: few,
			without: []invariant{learns, finishes}},
		{name: "L2, hold, two processes, rejections by callback", app: app{rows: eventRow, rejects: true, callback: true}, policy: person, gates: 2,
			budget: few, without: []invariant{learns, finishes}},
		{name: "L3, ask, callback, the store fails", app: callback, policy: ask, budget: failing},
		{name: "L3, ask, fenced, the store fails", app: app{rows: eventRow, fenced: true, plain: true}, policy: ask, budget: failing},
		{name: "L2, redeliver, the store fails", app: row, policy: again, budget: failing, without: unasked},
		{name: "L0, hold, nothing doubled", app: app{plain: true}, policy: person,
			budget: budget{deliveries: 3, gateKills: 1, appKills: 1, losses: 1}, without: []invariant{learns, finishes}},
	}
}

func TestEveryInvariantHolds(t *testing.T) {
	t.Parallel()
	seen := newTable()
	all := t.Run("explored", func(t *testing.T) {
		for _, v := range holding() {
			t.Run(v.name, func(t *testing.T) {
				t.Parallel()
				if *budgetFlag != "" {
					v.budget.read(t, *budgetFlag)
				}
				out := explore(v)
				t.Log(out.line())
				if out.broken != 0 {
					t.Fatalf("breaks %v:\n%s", out.broken, out.list())
				}
				seen.add(out.taken)
			})
		}
	})
	t.Run("the table of transitions is complete", func(t *testing.T) {
		if !all || seen.runs < len(holding()) || *budgetFlag != "" {
			return // not everything was explored, or other budgets
		}
		seen.check(t)
	})
}

// read takes a budget from the flag. Of what it does not name, the variant's own budget stays.
func (b *budget) read(t *testing.T, text string) {
	_, err := fmt.Sscanf(text, "%d,%d,%d,%d,%d", &b.deliveries, &b.gateKills, &b.appKills, &b.losses, &b.doubles)
	if err != nil {
		t.Fatalf("-model.budget %q: %v", text, err)
	}
	if n := int(b.deliveries) + int(b.odd); n > maxAttempts || n+int(b.doubles) > maxCopies {
		t.Fatalf("-model.budget %q: the model has room for %d attempts and %d forwards", text, maxAttempts, maxCopies)
	}
}

// line is the run in one line.
func (o outcome) line() string {
	result := "holds"
	if o.broken != 0 {
		result = fmt.Sprintf("breaks %v after %d steps", o.broken, len(o.trace))
		if o.stuck > 1 {
			result += fmt.Sprintf(" (%d states)", o.stuck)
		}
	}
	return fmt.Sprintf("%d states, %d transitions, depth %d: %s", o.states, o.steps, o.depth, result)
}

// list is the counterexample.
func (o outcome) list() string {
	var b strings.Builder
	for i, s := range o.trace {
		fmt.Fprintf(&b, "%3d  %s\n", i+1, s)
	}
	return b.String()
}
