package store

import (
	"context"
	"database/sql"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/store/database"
)

// ChosenAccount returns the id of the account that was chosen for an app in a conversation, or "".
func (s *Store) ChosenAccount(ctx context.Context, ref core.ConversationRef, app string) (account string, err error) {
	key, err := conversationKey(ref.ID)
	if err != nil {
		return "", err
	}
	err = s.db.Get(ctx, "reading the account of a conversation", `
		SELECT a.account FROM conversation_accounts a JOIN conversations c ON c.id = a.conversation JOIN collections s ON s.id = c.collection
		WHERE a.conversation = $1 AND a.app = $2 AND s.workspace = $3 AND s.owner = $4`, []any{key, app, ref.Workspace, ref.Owner}, &account)
	return account, database.Missing(err, nil)
}

// ChooseAccount records which account a conversation uses for an app. The error is core.CodeNotFound if there is no
// such conversation.
func (s *Store) ChooseAccount(ctx context.Context, ref core.ConversationRef, app, account string) error {
	return s.db.Update(ctx, "choosing the account of a conversation", func(ctx context.Context, tx *sql.Tx) error {
		key, _, err := findConversation(ctx, tx, ref, "")
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `
			INSERT INTO conversation_accounts (conversation, app, account) VALUES ($1, $2, $3)
			ON CONFLICT (conversation, app) DO UPDATE SET account = excluded.account`, key, app, account)
		return err
	})
}
