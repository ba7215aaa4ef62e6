package store

import (
	"context"
	"database/sql"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/store/database"
)

const apiKeyColumns = `k.id, k.name, k.workspace, k.role, k.accounts <> 0, k.view, k.surface, k.org_role, k.created_at, k.expires_at, k.last_used_at, ` + issuersOf + `, ` + userColumns

func apiKeyFields(k *core.APIKey, created, expires, used *int64, issuers *string) []any {
	return append([]any{&k.ID, &k.Name, &k.Workspace, &k.Role, &k.Accounts, &k.View, &k.Surface, &k.OrgRole, created, expires, used, issuers}, userFields(&k.User)...)
}

// scanAPIKey scans apiKeyColumns.
func scanAPIKey(row database.Row) (k core.APIKey, err error) {
	var created, expires, used int64
	var issuers string
	if err = row.Scan(apiKeyFields(&k, &created, &expires, &used, &issuers)...); err != nil {
		return core.APIKey{}, err
	}
	k.Issuers = strings.Split(issuers, "\n")
	k.CreatedAt, k.ExpiresAt, k.LastUsedAt = database.FromMillis(created), optionalTime(expires), optionalTime(used)
	return k, nil
}

// optionalTime is like database.FromMillis, but returns the zero time for 0.
func optionalTime(millis int64) time.Time {
	if millis == 0 {
		return time.Time{}
	}
	return database.FromMillis(millis)
}

// CreateAPIKey stores a key under the hash of its text and returns it with its id. The error is core.CodeNotFound
// if there is no such workspace, and core.CodeLimitReached if the user has too many keys.
func (s *Store) CreateAPIKey(ctx context.Context, k core.APIKey, hash string) (core.APIKey, error) {
	now := time.Now()
	k.ID, k.CreatedAt = newID("key_"), database.FromMillis(database.Millis(now))
	expires := optionalMillis(k.ExpiresAt)
	k.ExpiresAt = optionalTime(expires)
	k.Name = clean(k.Name)
	err := s.db.Update(ctx, "storing an API key", func(ctx context.Context, tx *sql.Tx) error {
		if _, err := personalOf(ctx, tx, k.Workspace); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `DELETE FROM api_keys WHERE expires_at <> 0 AND expires_at <= $1`, database.Millis(now.Add(-keepExpiredKey))); err != nil {
			return err
		}
		if err := s.allowKey(ctx, tx, k.User.ID); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `
			INSERT INTO api_keys (id, hash, name, user_id, workspace, role, created_at, expires_at, last_used_at, accounts, view, org_role, surface)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 0, $9, $10, $11, $12)`,
			k.ID, hash, k.Name, k.User.ID, k.Workspace, string(k.Role), database.Millis(now), expires, flag(k.Accounts), k.View, string(k.OrgRole), k.Surface)
		return err
	})
	return k, err
}

// keepExpiredKey is how long an expired key is still listed.
const keepExpiredKey = 30 * 24 * time.Hour

// APIKey returns the key with the given hash, and the current data of its user. The error is core.CodeNotFound if there is
// no such key or it has expired.
func (s *Store) APIKey(ctx context.Context, hash string) (core.APIKey, error) {
	var k core.APIKey
	err := s.db.Read(ctx, "looking up an API key", func(ctx context.Context, q database.Querier) (err error) {
		k, err = scanAPIKey(q.QueryRowContext(ctx, `SELECT `+apiKeyColumns+` FROM api_keys k JOIN users u ON u.id = k.user_id
			WHERE k.hash = $1 AND (k.expires_at = 0 OR k.expires_at > $2)`, hash, database.Millis(time.Now())))
		return err
	})
	return k, database.Missing(err, core.Errorf(core.CodeNotFound, "no such API key"))
}

// APIKeys returns the keys of a workspace, newest first. If userID is not "", it returns only that user's keys.
func (s *Store) APIKeys(ctx context.Context, workspace, userID string) ([]core.APIKey, error) {
	return database.List(ctx, s.db, "reading the API keys", `SELECT `+apiKeyColumns+` FROM api_keys k JOIN users u ON u.id = k.user_id
		WHERE k.workspace = $1 AND ($2 = '' OR k.user_id = $2) ORDER BY k.created_at DESC, k.id`, []any{workspace, userID}, scanAPIKey)
}

// DeleteAPIKey revokes a key of a workspace, on all servers. If userID is not "", the key must belong to that user.
// The error is core.CodeNotFound if there is no such key.
func (s *Store) DeleteAPIKey(ctx context.Context, workspace, userID, id string) error {
	return s.changeMembers(ctx, "revoking an API key", workspace, func(ctx context.Context, tx *sql.Tx) ([]string, error) {
		var owner string
		err := tx.QueryRowContext(ctx, `DELETE FROM api_keys WHERE id = $1 AND workspace = $2 AND ($3 = '' OR user_id = $3) RETURNING user_id`,
			id, workspace, userID).Scan(&owner)
		return []string{owner}, database.Missing(err, core.Errorf(core.CodeNotFound, "this workspace has no API key %.100q", id))
	})
}

// APIKeyUsed records when a key was last used.
func (s *Store) APIKeyUsed(ctx context.Context, id string, at time.Time) error {
	return s.db.Exec(ctx, "recording the use of an API key", `UPDATE api_keys SET last_used_at = $1 WHERE id = $2`, database.Millis(at), id)
}
