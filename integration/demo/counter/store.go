package counter

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"

	_ "modernc.org/sqlite" // database/sql driver "sqlite", pure Go
)

// schema holds the counter and one outcome row per event. The row's primary key is what makes the effect
// happen once, whatever the gate in front does.
const schema = `
CREATE TABLE IF NOT EXISTS counter (
	id    INTEGER PRIMARY KEY CHECK (id = 1),
	total INTEGER NOT NULL
) STRICT;
INSERT INTO counter (id, total) VALUES (1, 0) ON CONFLICT DO NOTHING;
CREATE TABLE IF NOT EXISTS outcome (
	event_id TEXT PRIMARY KEY,
	applied  INTEGER NOT NULL,
	total    INTEGER NOT NULL, -- the counter after this event: what every repeat is answered
	token    TEXT NOT NULL     -- the gate's token of the attempt that did it
) STRICT;`

// Store is the counter's SQLite file. It is safe for concurrent use.
type Store struct {
	db *sql.DB
}

// Open opens the file at path, or creates it.
func Open(ctx context.Context, path string) (*Store, error) {
	// Immediate transactions: two that read first and write later would end in SQLITE_BUSY.
	db, err := open(path, url.Values{"_txlock": {"immediate"}})
	if err != nil {
		return nil, err
	}
	if _, err := db.ExecContext(ctx, schema); err != nil {
		_ = db.Close()
		return nil, fmt.Errorf("counter %s: %w", path, err)
	}
	return &Store{db: db}, nil
}

func open(path string, query url.Values) (*sql.DB, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("counter %s: %w", path, err)
	}
	query.Add("_pragma", "busy_timeout(5000)") // ms
	dsn := url.URL{Scheme: "file", Path: filepath.ToSlash(abs), RawQuery: query.Encode()}
	db, err := sql.Open("sqlite", dsn.String())
	if err != nil {
		return nil, fmt.Errorf("counter %s: %w", path, err)
	}
	db.SetMaxOpenConns(4)
	return db, nil
}

// Close closes the file.
func (s *Store) Close() error { return s.db.Close() }

// Apply adds value to the counter and keeps the outcome under the event's id, in one transaction. For an event
// that is known it changes nothing. Either way it gives the counter as it was right after the event.
func (s *Store) Apply(ctx context.Context, eventID string, value int64, token string) (total int64, err error) {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return 0, fmt.Errorf("begin: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	err = tx.QueryRowContext(ctx, `SELECT total FROM outcome WHERE event_id = ?`, eventID).Scan(&total)
	if err == nil {
		return total, nil
	}
	if !errors.Is(err, sql.ErrNoRows) {
		return 0, fmt.Errorf("look up outcome: %w", err)
	}
	err = tx.QueryRowContext(ctx, `UPDATE counter SET total = total + ? WHERE id = 1 RETURNING total`, value).Scan(&total)
	if err != nil {
		return 0, fmt.Errorf("add to counter: %w", err)
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO outcome (event_id, applied, total, token) VALUES (?, ?, ?, ?)`,
		eventID, value, total, token)
	if err != nil {
		return 0, fmt.Errorf("keep outcome: %w", err)
	}
	if err := tx.Commit(); err != nil {
		return 0, fmt.Errorf("commit: %w", err)
	}
	return total, nil
}
