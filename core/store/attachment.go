package store

import (
	"context"
	"database/sql"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/store/database"
)

// putAttachments stores the attachments of consecutive messages of a conversation. position is the position of
// the first message.
func putAttachments(ctx context.Context, tx *sql.Tx, key int64, position int, add []message) error {
	for i, m := range add {
		for _, a := range m.Attachments {
			if _, err := tx.ExecContext(ctx, `INSERT INTO attachments (conversation, id, position, name, mime_type, content) VALUES ($1, $2, $3, $4, $5, $6)`,
				key, a.ID, position+i, clean(a.Name), clean(a.MIMEType), a.Content); err != nil {
				return err
			}
		}
	}
	return nil
}

// copyAttachments copies the attachments of a conversation's first rows messages to a fork.
func copyAttachments(ctx context.Context, tx *sql.Tx, from, to int64, rows int) error {
	_, err := tx.ExecContext(ctx, `
		INSERT INTO attachments (conversation, id, position, name, mime_type, content)
		SELECT $1, id, position, name, mime_type, content FROM attachments WHERE conversation = $2 AND position < $3`, to, from, rows)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `UPDATE conversations SET bytes = bytes + (SELECT COALESCE(SUM(LENGTH(content)), 0) FROM attachments WHERE conversation = $1) WHERE id = $1`, to)
	return err
}

// Attachment returns an attachment of a conversation. The error is core.CodeNotFound unless the conversation exists,
// belongs to ref.Owner, and has the attachment.
func (s *Store) Attachment(ctx context.Context, ref core.ConversationRef, id string) (core.Attachment, error) {
	a := core.Attachment{ID: id}
	err := s.db.Read(ctx, "reading an attachment", func(ctx context.Context, q database.Querier) error {
		key, _, err := findConversation(ctx, q, ref, "")
		if err != nil {
			return err
		}
		return q.QueryRowContext(ctx, `SELECT name, mime_type, content FROM attachments WHERE conversation = $1 AND id = $2`, key, id).
			Scan(&a.Name, &a.MIMEType, &a.Content)
	})
	return a, database.Missing(err, core.Errorf(core.CodeNotFound, "no such attachment"))
}
