package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"

	_ "modernc.org/sqlite" // the driver "sqlite"
)

// A ledger is what the workers remember outside the queue: which messages are
// done, and every attempt at one. It is a SQLite file that several processes
// may share; with a database server the statements are the same.
type ledger struct{ db *sql.DB }

// now is such as 2026-01-31T09:30:00.123Z.
const now = `strftime('%Y-%m-%dT%H:%M:%fZ', 'now')`

const schema = `
CREATE TABLE IF NOT EXISTS done (
	message_id TEXT PRIMARY KEY,
	receipt    TEXT NOT NULL,
	at         TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS attempts (
	message_id    TEXT NOT NULL,
	attempt       INTEGER NOT NULL, -- 1, 2, 3, …
	receive_count INTEGER NOT NULL, -- what the queue said
	started_at    TEXT NOT NULL,
	ended_at      TEXT,             -- NULL: under way, or the worker died
	error         TEXT,             -- NULL: none
	PRIMARY KEY (message_id, attempt)
);`

func openLedger(ctx context.Context, path string) (*ledger, error) {
	db, err := sql.Open("sqlite", "file:"+path+"?"+url.Values{
		// What is committed is on disk, and writers wait for each other.
		"_pragma": {"busy_timeout(10000)", "journal_mode(WAL)", "synchronous(FULL)"},
		"_txlock": {"immediate"},
	}.Encode())
	if err != nil {
		return nil, err
	}
	if _, err := db.ExecContext(ctx, schema); err != nil {
		return nil, errors.Join(fmt.Errorf("ledger %s: %w", path, err), db.Close())
	}
	return &ledger{db}, nil
}

func (l *ledger) close() error { return l.db.Close() }

// begin notes the next attempt at a message and returns its number, or 0 if
// the message is done already.
func (l *ledger) begin(ctx context.Context, id string, receiveCount int) (attempt int, err error) {
	err = l.db.QueryRowContext(ctx, `
		INSERT INTO attempts (message_id, attempt, receive_count, started_at)
		SELECT ?1, (SELECT count(*) FROM attempts WHERE message_id = ?1) + 1, ?2, `+now+`
		WHERE NOT EXISTS (SELECT * FROM done WHERE message_id = ?1)
		RETURNING attempt`, id, receiveCount).Scan(&attempt)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return attempt, err
}

// fail notes why an attempt came to nothing.
func (l *ledger) fail(ctx context.Context, id string, attempt int, cause error) error {
	_, err := l.db.ExecContext(ctx, `UPDATE attempts SET ended_at = `+now+`, error = ? WHERE message_id = ? AND attempt = ?`,
		cause.Error(), id, attempt)
	return err
}

// finish notes that a message is done and by which attempt, in one
// transaction. A job whose effect is in the same database has it here too, and
// is then done exactly once without an idempotency key.
func (l *ledger) finish(ctx context.Context, id string, attempt int, receipt string) error {
	tx, err := l.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after Commit it has nothing to do
	if _, err := tx.ExecContext(ctx, `UPDATE attempts SET ended_at = `+now+` WHERE message_id = ? AND attempt = ?`,
		id, attempt); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, `INSERT INTO done VALUES (?, ?, `+now+`) ON CONFLICT DO NOTHING`,
		id, receipt); err != nil {
		return err
	}
	return tx.Commit()
}
