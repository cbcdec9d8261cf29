package main

import (
	"context"
	"database/sql"
	"errors"
)

// A fence lets the app say more than "I know nothing of it": that it never will, neither from this attempt nor from
// one before it. An attempt that is still on its way then finds the fence, in the transaction that would have done its
// work, and does nothing.

var errFenced = errors.New("the gate was told that this attempt will never commit")

// fence gives the event's receipt; if it has none, it refuses the attempt and all before it for good. A later attempt
// has a greater token.
func (s *store) fence(ctx context.Context, at attempt) (receipt, bool, error) {
	s.writer.Lock()
	defer s.writer.Unlock()
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return receipt{}, false, err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	rec, found, err := row(ctx, tx, at)
	if err != nil || found {
		return rec, found, err
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO fences VALUES (?, ?, ?)
		ON CONFLICT DO UPDATE SET token = max(token, excluded.token)`, at.source, at.id, at.token)
	if err != nil {
		return receipt{}, false, err
	}
	return receipt{}, false, tx.Commit()
}

// checkFence refuses an attempt behind the event's fence.
func checkFence(ctx context.Context, tx *sql.Tx, at attempt) error {
	var token string
	err := tx.QueryRowContext(ctx, `SELECT token FROM fences WHERE source = ? AND event = ?`, at.source, at.id).Scan(&token)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil
	case err == nil && at.token <= token:
		return errFenced
	}
	return err
}
