package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// statements holds the store's SQL statements for one table.
type statements struct {
	create, put, get, touch, remove, purge, lock, replace string
}

// statementsFor returns the statements for a table. A record is bytea and not jsonb, because what clients say about
// themselves may contain a NUL, which PostgreSQL text cannot. now() is the time of the statement, because each
// statement is its own transaction.
func statementsFor(table pgx.Identifier) statements {
	index := pgx.Identifier{table[len(table)-1] + "_expires"}
	fill := strings.NewReplacer("{table}", table.Sanitize(), "{index}", index.Sanitize()).Replace
	return statements{
		create: fill(`
			CREATE TABLE IF NOT EXISTS {table} (
				id               text PRIMARY KEY,
				record           bytea NOT NULL,
				last_accessed_at timestamptz NOT NULL,
				expires_at       timestamptz NOT NULL
			);
			CREATE INDEX IF NOT EXISTS {index} ON {table} (expires_at)`),
		put: fill(`
			INSERT INTO {table} (id, record, last_accessed_at, expires_at)
			VALUES ($1, $2, $3, now() + $4 * interval '1 microsecond')
			ON CONFLICT (id) DO UPDATE SET
				record = EXCLUDED.record, last_accessed_at = EXCLUDED.last_accessed_at, expires_at = EXCLUDED.expires_at`),
		get: fill(`SELECT record, last_accessed_at, expires_at FROM {table} WHERE id = $1 AND expires_at > now()`),
		// Rows are locked in the order of their IDs, so that two batches never deadlock.
		touch: fill(`
			WITH batch AS (
				SELECT id, max(at) AS at, max(ttl) AS ttl
				FROM unnest($1::text[], $2::timestamptz[], $3::bigint[]) AS t (id, at, ttl) GROUP BY id
			), alive AS (
				SELECT id FROM {table} WHERE id = ANY ($1) AND expires_at > now() ORDER BY id FOR UPDATE
			)
			UPDATE {table} AS s SET
				last_accessed_at = greatest(s.last_accessed_at, batch.at),
				expires_at = now() + batch.ttl * interval '1 microsecond'
			FROM batch JOIN alive USING (id) WHERE s.id = batch.id`),
		lock: fill(`SELECT record FROM {table} WHERE id = $1 AND expires_at > now() FOR UPDATE`),
		replace: fill(`
			UPDATE {table} SET record = $2, last_accessed_at = $3,
				expires_at = CASE WHEN $4::bigint > 0 THEN now() + $4 * interval '1 microsecond' ELSE expires_at END
			WHERE id = $1`),
		remove: fill(`DELETE FROM {table} WHERE id = $1`),
		purge: fill(`
			DELETE FROM {table} WHERE id IN (
				SELECT id FROM {table} WHERE expires_at <= now() LIMIT 1000 FOR UPDATE SKIP LOCKED)`),
	}
}

// prepare creates the table if it is missing. The lock keeps servers that start at the same time from creating it
// twice, which CREATE TABLE IF NOT EXISTS alone does not prevent.
func (s *Store) prepare(ctx context.Context, table pgx.Identifier) error {
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtext('ropewalk sessionstore'))`); err != nil {
			return err
		}
		var exists bool
		if err := tx.QueryRow(ctx, `SELECT to_regclass($1) IS NOT NULL`, table.Sanitize()).Scan(&exists); err != nil || exists {
			return err
		}
		if _, err := tx.Exec(ctx, s.sql.create); err != nil {
			return fmt.Errorf("create the table %s, or have a role that may create it do so: %w", table.Sanitize(), err)
		}
		return nil
	})
}
