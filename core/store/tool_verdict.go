package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/store/database"
)

const (
	maxToolVerdicts    = 10_000
	toolVerdictsKept   = 7 * 24 * time.Hour
	deleteToolVerdicts = `DELETE FROM tool_verdicts WHERE (origin, hash) IN (SELECT origin, hash FROM tool_verdicts WHERE decided_at < $1 LIMIT $2)`
)

// PutToolVerdicts stores models' verdicts on sets of tools. It deletes the oldest verdicts beyond the limit.
func (s *Store) PutToolVerdicts(ctx context.Context, all ...core.ToolVerdict) error {
	if len(all) == 0 {
		return nil
	}
	return s.db.Update(ctx, "storing verdicts on tools", func(ctx context.Context, tx *sql.Tx) error {
		for _, v := range all {
			if _, err := tx.ExecContext(ctx, `INSERT INTO tool_verdicts (origin, hash, model, reason, decided_at) VALUES ($1, $2, $3, $4, $5)
				ON CONFLICT (origin, hash) DO UPDATE SET model = excluded.model, reason = excluded.reason, decided_at = excluded.decided_at`,
				v.Origin, v.Hash, v.Model, clean(v.Reason), database.Millis(v.At)); err != nil {
				return err
			}
		}
		_, err := tx.ExecContext(ctx, `DELETE FROM tool_verdicts WHERE (origin, hash) IN (
			SELECT origin, hash FROM tool_verdicts ORDER BY decided_at DESC, origin, hash LIMIT $1 OFFSET $2)`, purgeBatch, maxToolVerdicts)
		return err
	})
}

// ToolVerdicts returns the verdicts since a time, either of the model with an origin or, if origin is "", of all
// models.
func (s *Store) ToolVerdicts(ctx context.Context, origin string, since time.Time) ([]core.ToolVerdict, error) {
	return database.List(ctx, s.db, "reading verdicts on tools", `SELECT origin, hash, model, reason, decided_at FROM tool_verdicts WHERE ($1 = '' OR origin = $1) AND decided_at >= $2
		ORDER BY origin, hash`, []any{origin, database.Millis(since)}, func(row database.Row) (v core.ToolVerdict, err error) {
		var at int64
		err = row.Scan(&v.Origin, &v.Hash, &v.Model, &v.Reason, &at)
		v.At = database.FromMillis(at)
		return v, err
	})
}
