package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/store/database"
)

// ClaimRun claims a conversation for one run across all servers that use the database, or extends the claim if
// holder already has it. The claim ends with ReleaseRun, or when the lease expires because the server was
// killed. The clocks of the servers must not differ by more than a fraction of the lease.
//
// The error is core.CodeRunInProgress if another run has the claim, and core.CodeNotFound unless the conversation
// exists and belongs to ref.Owner.
func (s *Store) ClaimRun(ctx context.Context, ref core.ConversationRef, holder string, lease time.Duration) error {
	return s.db.UpdateGrouped(ctx, "claiming a conversation for a run", func(ctx context.Context, tx *sql.Tx) error {
		key, _, err := findConversation(ctx, tx, ref, s.db.LockRow())
		if err != nil {
			return err
		}
		now := time.Now()
		return database.Change(ctx, tx, core.Errorf(core.CodeRunInProgress, "a run is in progress in this conversation"), `
			INSERT INTO runs (conversation, holder, held_until) VALUES ($1, $2, $3)
			ON CONFLICT (conversation) DO UPDATE SET holder = excluded.holder, held_until = excluded.held_until
			WHERE runs.holder = excluded.holder OR runs.held_until <= $4`, key, holder, database.Millis(now.Add(lease)), database.Millis(now))
	})
}

// RunHolder returns the holder that has claimed a conversation for a run. The error is core.CodeNotFound if no run has
// a claim, or if the conversation does not exist or belongs to somebody else.
func (s *Store) RunHolder(ctx context.Context, ref core.ConversationRef) (holder string, err error) {
	err = s.db.View(ctx, "finding the run of a conversation", func(ctx context.Context, tx *sql.Tx) error {
		key, _, err := findConversation(ctx, tx, ref, "")
		if err != nil {
			return err
		}
		return tx.QueryRowContext(ctx, `SELECT holder FROM runs WHERE conversation = $1 AND held_until > $2`, key, database.Millis(time.Now())).Scan(&holder)
	})
	return holder, database.Missing(err, core.Errorf(core.CodeNotFound, "no run is in progress in this conversation"))
}

// ReleaseRun ends the claim of holder. It does nothing if holder has no claim.
func (s *Store) ReleaseRun(ctx context.Context, ref core.ConversationRef, holder string) error {
	key, err := conversationKey(ref.ID)
	if err != nil {
		return nil //nolint:nilerr // there is no conversation, so nothing is claimed
	}
	return s.db.UpdateGrouped(ctx, "ending a run", func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM runs WHERE conversation = $1 AND holder = $2`, key, holder)
		return err
	})
}
