package counter

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
)

// Ledger reads the counter's file on a connection of its own, which cannot write. It is how an observer sees
// the effects without asking the app.
type Ledger struct {
	db *sql.DB
}

// Outcome is the row of one event.
type Outcome struct {
	Applied int64  // what was added
	Total   int64  // the counter right after it
	Token   string // the gate's token of the attempt that did it
}

// OpenLedger opens the file at path for reading; it must exist.
func OpenLedger(ctx context.Context, path string) (*Ledger, error) {
	db, err := open(path, url.Values{"mode": {"ro"}})
	if err != nil {
		return nil, err
	}
	if err := db.PingContext(ctx); err != nil {
		_ = db.Close()
		return nil, fmt.Errorf("read counter %s: %w", path, err)
	}
	return &Ledger{db: db}, nil
}

// Close closes the connection.
func (l *Ledger) Close() error { return l.db.Close() }

// Total gives the counter and what the outcome rows add up to, read at one moment. In an app whose effects
// happen once, the two are equal.
func (l *Ledger) Total(ctx context.Context) (total, applied int64, err error) {
	err = l.db.QueryRowContext(ctx, `SELECT total, (SELECT COALESCE(SUM(applied), 0) FROM outcome) FROM counter WHERE id = 1`).
		Scan(&total, &applied)
	if err != nil {
		return 0, 0, fmt.Errorf("read counter: %w", err)
	}
	return total, applied, nil
}

// Outcome gives the row of an event; ok is false where there is none.
func (l *Ledger) Outcome(ctx context.Context, eventID string) (o Outcome, ok bool, err error) {
	err = l.db.QueryRowContext(ctx, `SELECT applied, total, token FROM outcome WHERE event_id = ?`, eventID).
		Scan(&o.Applied, &o.Total, &o.Token)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return Outcome{}, false, nil
	case err != nil:
		return Outcome{}, false, fmt.Errorf("read outcome: %w", err)
	}
	return o, true, nil
}
