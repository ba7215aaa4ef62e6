package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/store/database"
)

// Limits on one person's kept results across all workspaces. If they are exceeded, the oldest are deleted.
const (
	maxKeptBytes = 64 << 20
	maxKept      = 500
)

// deleteExpiredResults deletes at most $2 kept results that have expired by $1.
const deleteExpiredResults = `DELETE FROM kept_results WHERE id IN (SELECT id FROM kept_results WHERE expires_at <= $1 LIMIT $2)`

// KeepResult stores the text of a result until it expires, and deletes the person's oldest results that exceed the limits.
// The result is also deleted if the API key, the person or the workspace is deleted, or if the person leaves the workspace.
// The error is core.CodePayloadTooLarge for text that alone exceeds the limit, and core.CodeForbidden if the key, the person
// or the workspace no longer exists.
func (s *Store) KeepResult(ctx context.Context, r core.KeptResult) error {
	text := clean(r.Text)
	if len(text) > maxKeptBytes {
		return core.Errorf(core.CodePayloadTooLarge, "a result of %d bytes is too large to store", len(text))
	}
	return s.db.Update(ctx, "keeping a result", func(ctx context.Context, tx *sql.Tx) error {
		var key *string
		if r.Key != "" {
			key = &r.Key
		}
		if err := database.Change(ctx, tx, core.Errorf(core.CodeForbidden, "the result was not stored, because its caller or the workspace no longer exists"), `
			INSERT INTO kept_results (id, workspace, user_id, api_key, tool, media_type, content, characters, bytes, expires_at)
			SELECT CAST($1 AS TEXT), CAST($2 AS TEXT), CAST($3 AS TEXT), CAST($4 AS TEXT), CAST($5 AS TEXT), CAST($6 AS TEXT), CAST($7 AS TEXT),
				CAST($8 AS BIGINT), CAST($9 AS BIGINT), CAST($10 AS BIGINT)
			WHERE EXISTS (SELECT 1 FROM users WHERE id = CAST($3 AS TEXT)) AND EXISTS (SELECT 1 FROM workspaces WHERE id = CAST($2 AS TEXT))
				AND (CAST($4 AS TEXT) IS NULL OR EXISTS (SELECT 1 FROM api_keys WHERE id = CAST($4 AS TEXT)))`,
			r.ID, r.Workspace, r.User, key, r.Tool, r.MediaType, text, r.Length, len(text), database.Millis(r.ExpiresAt)); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, deleteExpiredResults, database.Millis(time.Now()), purgeBatch); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `DELETE FROM kept_results WHERE id IN (SELECT id FROM (
			SELECT id, SUM(bytes) OVER newest AS total, ROW_NUMBER() OVER newest AS number FROM kept_results WHERE user_id = $1
			WINDOW newest AS (ORDER BY expires_at DESC, id)) AS mine WHERE total > $2 OR number > $3)`, r.User, maxKeptBytes, maxKept)
		return err
	})
}

// KeptResult returns up to length characters of a kept result, starting at offset. ID, Workspace, User and Key of r must
// match those of the result. Otherwise, or if the result has expired, the error is core.CodeNotFound.
func (s *Store) KeptResult(ctx context.Context, r core.KeptResult, offset, length int) (core.KeptResult, error) {
	var expires int64
	err := s.db.Get(ctx, "reading a kept result", `SELECT tool, media_type, characters, expires_at, substr(content, CAST($5 AS INTEGER), CAST($6 AS INTEGER)) FROM kept_results
		WHERE id = $1 AND workspace = $2 AND user_id = $3 AND COALESCE(api_key, '') = $4 AND expires_at > $7`,
		[]any{r.ID, r.Workspace, r.User, r.Key, offset + 1, length, database.Millis(time.Now())}, &r.Tool, &r.MediaType, &r.Length, &expires, &r.Text)
	r.ExpiresAt = database.FromMillis(expires)
	return r, database.Missing(err, core.Errorf(core.CodeNotFound, "there is no result %.80q; results are kept for an hour, so call the tool again", r.ID))
}
