package store

import (
	"context"
	"database/sql"
	"errors"

	"github.com/ropewalk/ropewalk/core"
)

// Quota limits how much one person may store across all workspaces. 0 means no limit.
type Quota struct {
	APIKeys       int
	PersonalApps  int // in the person's own workspace
	Conversations int
	Bytes         int64 // conversations: messages (including queued ones) and attachments, with all blocks, titles and metadata
}

// bytesStep is by how many bytes a conversation may grow before the quota is checked again, because adding up all of a person's
// conversations takes longer than storing a message.
const bytesStep = 64 << 10

// lock makes transactions that count the rows of a user or a workspace wait for each other. Call it before the
// transaction inserts such a row.
func (s *Store) lock(ctx context.Context, tx *sql.Tx, table, id string) error {
	var found int
	err := tx.QueryRowContext(ctx, `SELECT 1 FROM `+table+` c WHERE c.id = $1 `+s.db.LockRow(), id).Scan(&found)
	if errors.Is(err, sql.ErrNoRows) {
		return nil // a later statement that needs the row fails
	}
	return err
}

func limitReached(what string, limit int64, setting string) error {
	return core.Errorf(core.CodeLimitReached, "you have stored %d %s, which is the maximum (limits.%s); delete some first", limit, what, setting)
}

// allowKey returns core.CodeLimitReached if a person already has as many API keys as the quota allows. It locks the
// user.
func (s *Store) allowKey(ctx context.Context, tx *sql.Tx, userID string) error {
	if s.quota.APIKeys == 0 {
		return nil
	}
	if err := s.lock(ctx, tx, "users", userID); err != nil {
		return err
	}
	var keys int
	err := tx.QueryRowContext(ctx, `SELECT COUNT(*) FROM api_keys WHERE user_id = $1`, userID).Scan(&keys)
	if err == nil && keys >= s.quota.APIKeys {
		err = limitReached("API keys", int64(keys), "apiKeys")
	}
	return err
}

// allowApp returns core.CodeLimitReached if a workspace is personal and has more apps than the quota allows.
func (s *Store) allowApp(ctx context.Context, tx *sql.Tx, workspace string) error {
	if s.quota.PersonalApps == 0 {
		return nil
	}
	var apps int
	err := tx.QueryRowContext(ctx, `SELECT COUNT(*) FROM installations i JOIN workspaces w ON w.id = i.workspace
		WHERE w.id = $1 AND w.personal_of IS NOT NULL`, workspace).Scan(&apps)
	if err == nil && apps > s.quota.PersonalApps {
		err = limitReached("apps in your personal workspace", int64(s.quota.PersonalApps), "personalApps")
	}
	return err
}

// allowConversation returns core.CodeLimitReached if the owner of a collection has more conversations, or has stored
// more bytes, than the quota allows. The conversations that the transaction adds must be counted already, which locks
// the collection.
func (s *Store) allowConversation(ctx context.Context, tx *sql.Tx, collection int64) error {
	if s.quota.Conversations > 0 {
		var stored int
		err := tx.QueryRowContext(ctx, `SELECT CAST(SUM(conversations) AS BIGINT) FROM collections
			WHERE owner = (SELECT owner FROM collections WHERE id = $1)`, collection).Scan(&stored)
		if err == nil && stored > s.quota.Conversations {
			err = limitReached("conversations", int64(s.quota.Conversations), "conversations")
		}
		if err != nil {
			return err
		}
	}
	return s.allowBytes(ctx, tx, collection)
}

// allowBytes returns core.CodeLimitReached if the owner of a collection has stored more than the quota allows.
func (s *Store) allowBytes(ctx context.Context, tx *sql.Tx, collection int64) error {
	if s.quota.Bytes == 0 {
		return nil
	}
	var stored int64
	err := tx.QueryRowContext(ctx, `SELECT CAST(COALESCE(SUM(c.bytes + COALESCE(LENGTH(q.message), 0)), 0) AS BIGINT)
		FROM conversations c JOIN collections s ON s.id = c.collection LEFT JOIN queued q ON q.conversation = c.id
		WHERE s.owner = (SELECT owner FROM collections WHERE id = $1)`, collection).Scan(&stored)
	if err == nil && stored > s.quota.Bytes {
		err = limitReached("bytes of conversations", s.quota.Bytes, "storedMiB")
	}
	return err
}

// sizeOf returns how many bytes of the quota messages use up.
func sizeOf(all []message) (n int64) {
	for _, m := range all {
		n += int64(len(m.Content) + len(m.Blocks) + len(m.Metadata))
		for _, a := range m.Attachments {
			n += int64(len(a.Content))
		}
	}
	return n
}

// startsRun reports whether messages start a run. Only such messages are subject to the quota; a model's answers are always
// stored.
func startsRun(all []message) bool { return len(all) > 0 && all[0].Role == "user" }
