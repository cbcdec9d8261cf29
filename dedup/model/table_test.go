package model

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/einlass/einlass/dedup"
)

// table holds which moves were made from which states.
type table struct {
	mu   sync.Mutex // guards all below
	runs int
	made map[string][dedup.States]int
}

func newTable() *table { return &table{made: map[string][dedup.States]int{}} }

func (b *table) add(moves map[taken]moved) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.runs++
	for m := range moves {
		row := b.made[m.row()]
		row[m.from.state]++
		b.made[m.row()] = row
	}
}

// rowNames are all moves there are, as far as the rules tell them apart.
func rowNames() (names []string) {
	names = []string{"reserve", "reserve, lease over, ask", "reserve, lease over, redeliver", "reserve, lease over, hold",
		"reserve other content", "hold", "hold, lease over"}
	for _, by := range []string{"newest", "older", "closed"} {
		for _, what := range []string{"finish committed", "finish rejected", "finish aborted", "confirm committed",
			"confirm rejected", "confirm aborted", "absent", "absent, fenced", "extend"} {
			names = append(names, what+", "+by)
		}
	}
	return names
}

func (m taken) row() string {
	name := [moveKinds]string{"reserve", "finish", "confirm", "absent", "absent, fenced", "extend", "hold"}[m.move.kind]
	over := m.from.state == reserved && m.from.lease == leaseOver
	switch m.move.kind {
	case reserve:
		switch {
		case m.from.found() && m.from.digest != m.move.digest:
			return "reserve other content"
		case over:
			return name + ", lease over, " + [...]string{"redeliver", "hold", "ask"}[m.move.policy]
		}
		return name
	case hold:
		if over {
			return name + ", lease over"
		}
		return name
	case finish, confirm:
		name += " " + m.move.outcome.String()
	}
	switch {
	case m.from.found() && m.move.attempt <= m.from.closed:
		return name + ", closed"
	case m.from.found() && m.move.attempt < m.from.attempt:
		return name + ", older"
	}
	return name + ", newest"
}

func (b *table) check(t *testing.T) {
	head := fmt.Sprintf("%-32s", "from")
	for state := range dedup.States {
		head += fmt.Sprintf(" %9s", dedup.State(state))
	}
	t.Log(head)
	for _, row := range rowNames() {
		line := fmt.Sprintf("%-32s", row)
		for state, n := range b.made[row] {
			why := impossible(row, dedup.State(state))
			switch {
			case n == 0 && why == "":
				t.Errorf("%s from %s was never made, and nothing says why", row, dedup.State(state))
			case n > 0 && why != "":
				t.Errorf("%s from %s was made, although it is said that %s", row, dedup.State(state), why)
			}
			line += fmt.Sprintf(" %9s", map[bool]string{true: "made", false: "-"}[n > 0])
		}
		t.Log(line)
		delete(b.made, row)
	}
	for row := range b.made {
		t.Errorf("%s is no row of the table", row)
	}
}

// impossible says why a move is never made from a state.
func impossible(row string, from dedup.State) string {
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(row, w) })
	}
	switch {
	case from == dedup.StateQueued, from == dedup.StateDead:
		return "nothing makes it yet: it is the inbox's"
	case from == dedup.StateAbsent && has("older", "closed", "other content"):
		return "without a receipt nothing is older, closed or other"
	case from == dedup.StateAbsent && !has("reserve", "confirm"):
		return "who had read a receipt was stopped when an older store was restored"
	case has("lease over") && from != dedup.StateReserved:
		return "only a reservation has a lease"
	case has("rejected") && from == dedup.StateCommitted, has("committed") && from == dedup.StateRejected:
		return "an app with a row decides an event once"
	case has("absent", "extend") && from == dedup.StateHeld:
		return "nobody asks where the policy is to hold"
	case has("closed") && from == dedup.StateHeld:
		return "nothing is closed where nobody asks"
	}
	return ""
}
