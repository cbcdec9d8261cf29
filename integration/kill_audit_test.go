package integration

import (
	"bufio"
	"cmp"
	"database/sql"
	"os"
	"slices"
	"strings"
	"time"

	"go.etcd.io/bbolt"
	_ "modernc.org/sqlite" // as the app
)

// effect is one row of the app's: something it has done.
type effect struct {
	attempt int
	amount  int
	inDoubt bool // the gate had said so
}

// findings are what the audit counts.
type findings struct {
	kills    int // at their points
	events   int
	effects  int
	doubles  int // effects of an event that had one
	told     int // those of them that the gate had flagged in doubt
	lost     int // acknowledged events without an effect
	overlaps int // attempts that arrived while an earlier one was worked on
}

// audit repeats every event, then stops everything and looks at what the app, the gate and the senders have.
func (l *lab) audit(chaos time.Duration) *findings {
	before := l.trace(nil)
	l.gate.mustStart("record")
	waitListening(l.t, l.addr)
	l.senders.repeat()
	l.gate.stop()
	l.app.stop()
	f := &findings{kills: l.struck.sum(), events: len(l.senders.events)}
	if after := l.trace(f); after != before {
		l.senders.fault("repeats of answered events: %d requests reached the app", after-before)
	}
	for _, step := range []string{"store-reserve", "store-commit", "store-reject", "store-abort", "store-confirm", "forward"} {
		if strings.Contains(l.gate.output(), "\npassed "+step) {
			l.senders.fault("repeats of answered events passed %s", step)
		}
	}
	l.compare(f)
	l.readGate()

	faults := l.senders.faults
	torn, tries := 0, 0
	for _, e := range l.senders.events {
		torn, tries = torn+e.torn, tries+e.tries
	}
	l.t.Logf("level %d: %d kills (%d at their points, %d of the app), and %d from outside whose point was not reached in time (%v); %s\n"+
		"events %d, deliveries %d, answers cut off %d, effects %d, overlapping attempts %d\n"+
		"double effects %d (flagged in doubt: %d), lost %d\n%s",
		l.level.app, f.kills+l.missed.sum(), f.kills, l.of(l.crashes), l.missed.sum(), map[string]int(l.missed), chaos.Round(time.Second),
		f.events, tries, torn, f.effects, f.overlaps,
		f.doubles, f.told, f.lost, l.struck)
	for _, fault := range faults[:min(len(faults), 50)] {
		l.t.Error(fault)
	}
	if len(faults) > 0 {
		l.t.Errorf("%d faults; -artifacts keeps what gate and app wrote", len(faults))
		l.stories(faults)
	}
	if lacking := l.lacking(); len(lacking) > 0 {
		l.t.Errorf("nobody was killed at %v", lacking)
	}
	return f
}

func (l *lab) of(points []string) (n int) {
	for _, point := range points {
		n += l.struck[point]
	}
	return n
}

// compare holds the senders' events against the app's effects.
func (l *lab) compare(f *findings) {
	effects, total, err := l.readCounter()
	if err != nil {
		l.t.Fatal(err)
	}
	sum, known := 0, map[string]bool{}
	for _, e := range l.senders.events {
		known[e.id] = true
		rows := effects[e.id]
		f.effects += len(rows)
		if e.answer == nil {
			l.senders.fault("event %s was never answered, in %d tries", e.id, e.tries)
		}
		if e.amount > 0 && e.answer != nil && len(rows) == 0 {
			f.lost++
			l.senders.fault("event %s is lost: answered %d %q, no effect", e.id, e.answer.Status, e.answer.Body)
		}
		if e.amount == 0 && len(rows) > 0 {
			l.senders.fault("event %s was refused for good and has an effect", e.id)
		}
		// By attempt: what an older one did last is no fault of the gate's.
		slices.SortFunc(rows, func(a, b effect) int { return cmp.Compare(a.attempt, b.attempt) })
		for i, row := range rows {
			sum += row.amount
			switch {
			case row.amount != e.amount:
				l.senders.fault("event %s of %d has an effect of %d", e.id, e.amount, row.amount)
			case i == 0:
			case l.level.app >= 2:
				f.doubles++
				l.senders.fault("event %s has %d effects: %+v", e.id, len(rows), rows)
			default:
				f.doubles++
				if row.inDoubt && row.attempt > rows[i-1].attempt {
					f.told++
				} else {
					l.senders.fault("event %s has a second effect, and the app was not told of the doubt: %+v", e.id, rows)
				}
			}
		}
	}
	for id := range effects {
		if !known[id] {
			l.senders.fault("event %s has an effect and no sender", id)
		}
	}
	want := 0
	for _, e := range l.senders.events {
		want += e.amount
	}
	if total != sum || l.level.app >= 2 && total != want {
		l.senders.fault("the counter is %d, its effects make %d, the events %d", total, sum, want)
	}
}

func (l *lab) readCounter() (effects map[string][]effect, total int, err error) {
	db, err := sql.Open("sqlite", "file:"+l.counter())
	if err != nil {
		return nil, 0, err
	}
	defer db.Close()
	rows, err := db.QueryContext(l.t.Context(), `SELECT event, CAST(attempt AS INTEGER), amount, in_doubt <> '' FROM effects`)
	if err != nil {
		return nil, 0, err
	}
	defer rows.Close()
	effects = map[string][]effect{}
	for rows.Next() {
		var id string
		var e effect
		if err := rows.Scan(&id, &e.attempt, &e.amount, &e.inDoubt); err != nil {
			return nil, 0, err
		}
		effects[id] = append(effects[id], e)
	}
	if err := rows.Err(); err != nil {
		return nil, 0, err
	}
	return effects, total, db.QueryRowContext(l.t.Context(), `SELECT total FROM counter`).Scan(&total)
}

// readGate looks for what the gate's processes should not have said, and at its file.
func (l *lab) readGate() {
	file, err := os.Open(l.gate.log)
	if err != nil {
		l.t.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		// Two receipts prove two effects. At level 1 there may be two.
		if strings.Contains(line, "panic") || strings.Contains(line, "attempt_closed") ||
			l.level.app >= 2 && strings.Contains(line, "receipt_differs") {
			l.senders.fault("the gate said: %s", line)
		}
	}
	db, err := bbolt.Open(l.store(), 0o600, &bbolt.Options{ReadOnly: true, Timeout: time.Second})
	if err != nil {
		l.t.Fatal(err)
	}
	defer db.Close()
	err = db.View(func(tx *bbolt.Tx) error {
		for err := range tx.Check() {
			l.senders.fault("the gate's file: %v", err)
		}
		return nil
	})
	if err != nil {
		l.t.Fatal(err)
	}
}
