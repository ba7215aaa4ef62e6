package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

// ClaimRun takes the one place for a run in a conversation, among all servers on the database, or
// keeps it when holder has it already. It is free again after ReleaseRun, or when the lease is over:
// of a server that was killed, nobody waits for longer. The clocks of the servers must agree to a part
// of the lease.
//
// core.CodeRunInProgress when another has it, core.CodeNotFound unless the conversation is there and
// its owner's.
func (s *Store) ClaimRun(ctx context.Context, ref core.ConversationRef, holder string, lease time.Duration) error {
	return s.changeShared(ctx, "claiming a conversation for a run", func(tx *sql.Tx) error {
		key, _, err := find(ctx, tx, ref, s.dialect.lockRow)
		if err != nil {
			return err
		}
		now := time.Now()
		result, err := tx.ExecContext(ctx, `
			INSERT INTO runs (conversation, holder, held_until) VALUES ($1, $2, $3)
			ON CONFLICT (conversation) DO UPDATE SET holder = excluded.holder, held_until = excluded.held_until
			WHERE runs.holder = excluded.holder OR runs.held_until <= $4`, key, holder, millis(now.Add(lease)), millis(now))
		if err != nil {
			return err
		}
		n, err := result.RowsAffected()
		if err == nil && n == 0 {
			err = core.Errorf(core.CodeRunInProgress, "a run is in progress in this conversation")
		}
		return err
	})
}

// ReleaseRun gives back what holder has claimed. Giving back what it has not is not an error.
func (s *Store) ReleaseRun(ctx context.Context, ref core.ConversationRef, holder string) error {
	key, err := conversationKey(ref.ID)
	if err != nil {
		return nil //nolint:nilerr // no conversation, so nothing is held
	}
	return s.changeShared(ctx, "ending a run", func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM runs WHERE conversation = $1 AND holder = $2`, key, holder)
		return err
	})
}
