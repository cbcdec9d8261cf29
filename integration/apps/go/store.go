package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"sync"

	_ "modernc.org/sqlite" // database/sql driver "sqlite", pure Go
)

// schema holds the counter with its history, one row per event, and what was refused for good. The rows are kept at
// least as long as the gate keeps its receipts.
const schema = `
CREATE TABLE IF NOT EXISTS counter (id INTEGER PRIMARY KEY CHECK (id = 1), total INTEGER NOT NULL);
INSERT INTO counter VALUES (1, 0) ON CONFLICT DO NOTHING;
CREATE TABLE IF NOT EXISTS effects (
	source TEXT, event TEXT, attempt INTEGER, token TEXT, amount INTEGER, in_doubt TEXT
);
CREATE TABLE IF NOT EXISTS outcomes (
	source TEXT, event TEXT, outcome TEXT NOT NULL, status INTEGER NOT NULL, content_type TEXT NOT NULL, body TEXT NOT NULL,
	PRIMARY KEY (source, event)
);
CREATE TABLE IF NOT EXISTS fences (
	source TEXT, event TEXT, token TEXT NOT NULL,
	PRIMARY KEY (source, event)
);`

type store struct {
	db     *sql.DB
	writer sync.Mutex // SQLite has one; here they queue in order. The outcome question does not wait for them
	rows   bool       // keep one per event
	commit func(*sql.Tx) error
}

func openStore(path string, rows bool) (*store, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	dsn := url.URL{Scheme: "file", Path: filepath.ToSlash(path), RawQuery: url.Values{
		// FULL: a commit is on disk when it returns. What the gate is told must outlive a power failure.
		"_pragma": {"busy_timeout(5000)", "journal_mode(WAL)", "synchronous(FULL)"},
		// A transaction has the file to itself from its first statement on, so what it reads stays true.
		"_txlock": {"immediate"},
	}.Encode()}
	db, err := sql.Open("sqlite", dsn.String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(4)
	if _, err := db.Exec(schema); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &store{db: db, rows: rows, commit: (*sql.Tx).Commit}, nil
}

// once does an event's work and keeps its receipt, in one transaction. For a known event it only gives the receipt of
// that time. In a database where such transactions run side by side (PostgreSQL, MySQL), begin with the INSERT: the
// second one waits at the primary key, fails, and then reads the row.
func (s *store) once(ctx context.Context, at attempt, work func(*sql.Tx) (receipt, error)) (rec receipt, err error) {
	s.writer.Lock()
	defer s.writer.Unlock()
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return receipt{}, err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	if s.rows {
		rec, found, err := row(ctx, tx, at)
		if err != nil || found {
			return rec, err
		}
		if err := checkFence(ctx, tx, at); err != nil {
			return receipt{}, err
		}
	}
	if rec, err = work(tx); err != nil {
		return receipt{}, err
	}
	if s.rows {
		_, err := tx.ExecContext(ctx, `INSERT INTO outcomes VALUES (?, ?, ?, ?, ?, ?)`,
			at.source, at.id, rec.Outcome, rec.Status, rec.ContentType, rec.Body)
		if err != nil {
			return receipt{}, err
		}
	}
	return rec, s.commit(tx)
}

// lookUp gives an event's receipt, if it has one.
func (s *store) lookUp(ctx context.Context, at attempt) (receipt, bool, error) {
	return row(ctx, s.db, at)
}

type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func row(ctx context.Context, in querier, at attempt) (rec receipt, found bool, err error) {
	err = in.QueryRowContext(ctx, `SELECT outcome, status, content_type, body FROM outcomes WHERE source = ? AND event = ?`,
		at.source, at.id).Scan(&rec.Outcome, &rec.Status, &rec.ContentType, &rec.Body)
	if errors.Is(err, sql.ErrNoRows) {
		return receipt{}, false, nil
	}
	return rec, err == nil, err
}

// addEffect is the effect: what must not happen twice.
func addEffect(ctx context.Context, tx *sql.Tx, at attempt, amount int64) (total int64, err error) {
	_, err = tx.ExecContext(ctx, `INSERT INTO effects VALUES (?, ?, ?, ?, ?, ?)`,
		at.source, at.id, at.number, at.token, amount, at.inDoubt)
	if err != nil {
		return 0, err
	}
	err = tx.QueryRowContext(ctx, `UPDATE counter SET total = total + ? RETURNING total`, amount).Scan(&total)
	return total, err
}

func (s *store) total(ctx context.Context) (total int64, err error) {
	err = s.db.QueryRowContext(ctx, `SELECT total FROM counter`).Scan(&total)
	return total, err
}
