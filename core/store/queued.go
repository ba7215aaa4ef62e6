package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/store/database"
)

// QueueMessage stores a message that waits until a conversation's run ends, and holds it for the given lease. It waits
// until AppendMessages appends it or WithdrawQueued removes it. If it is no longer held, it is read as the last message of
// its conversation, and becomes an ordinary message when the user sends the next one, or when a server next starts.
//
// The error is core.CodeConflict if a message is already waiting, core.CodeLimitReached beyond the quota, and
// core.CodeNotFound unless the conversation exists and belongs to ref.Owner.
func (s *Store) QueueMessage(ctx context.Context, ref core.ConversationRef, q core.QueuedMessage, lease time.Duration) error {
	message, err := json.Marshal(q.Message)
	if err != nil {
		return err
	}
	return s.db.UpdateGrouped(ctx, "queuing a message", func(ctx context.Context, tx *sql.Tx) error {
		key, collection, err := findConversation(ctx, tx, ref, s.db.LockRow())
		if err != nil {
			return err
		}
		if err := database.Change(ctx, tx, core.Errorf(core.CodeConflict, "a message is already queued in this conversation; wait until its run starts, or withdraw it"),
			`INSERT INTO queued (conversation, id, message, held_until) VALUES ($1, $2, $3, $4) ON CONFLICT (conversation) DO NOTHING`,
			key, q.ID, clean(string(message)), database.Millis(time.Now().Add(lease))); err != nil {
			return err
		}
		return s.allowBytes(ctx, tx, collection)
	})
}

// HoldQueued holds a queued message for the given lease from now on; 0 releases it. The error is core.CodeNotFound if the
// message is no longer waiting.
func (s *Store) HoldQueued(ctx context.Context, ref core.ConversationRef, id string, lease time.Duration) error {
	return s.db.UpdateGrouped(ctx, "holding a queued message", func(ctx context.Context, tx *sql.Tx) error {
		key, _, err := findConversation(ctx, tx, ref, s.db.LockRow())
		if err != nil {
			return err
		}
		return database.Change(ctx, tx, errNotQueued(), `UPDATE queued SET held_until = $3 WHERE conversation = $1 AND id = $2`, key, id, database.Millis(time.Now().Add(lease)))
	})
}

// QueuedMessage returns the message that is waiting in a conversation, or core.CodeNotFound.
func (s *Store) QueuedMessage(ctx context.Context, ref core.ConversationRef) (q core.QueuedMessage, err error) {
	err = s.db.View(ctx, "reading a queued message", func(ctx context.Context, tx *sql.Tx) error {
		key, _, err := findConversation(ctx, tx, ref, "")
		if err != nil {
			return err
		}
		q, err = scanQueued(tx.QueryRowContext(ctx, `SELECT id, message FROM queued WHERE conversation = $1 AND held_until > $2`, key, database.Millis(time.Now())))
		return err
	})
	return q, err
}

// WithdrawQueued removes and returns the message that is waiting in a conversation. The error is core.CodeNotFound if there
// is none.
func (s *Store) WithdrawQueued(ctx context.Context, ref core.ConversationRef) (q core.QueuedMessage, err error) {
	err = s.db.UpdateGrouped(ctx, "withdrawing a queued message", func(ctx context.Context, tx *sql.Tx) error {
		key, _, err := findConversation(ctx, tx, ref, s.db.LockRow())
		if err != nil {
			return err
		}
		q, err = scanQueued(tx.QueryRowContext(ctx, `DELETE FROM queued WHERE conversation = $1 AND held_until > $2 RETURNING id, message`, key, database.Millis(time.Now())))
		return err
	})
	return q, err
}

func scanQueued(row *sql.Row) (q core.QueuedMessage, err error) {
	var message string
	if err = row.Scan(&q.ID, &message); err != nil {
		return q, database.Missing(err, errNotQueued())
	}
	err = json.Unmarshal([]byte(message), &q.Message)
	q.Message.Blocks, q.Message.Metadata = notNull(q.Message.Blocks), notNull(q.Message.Metadata)
	return q, err
}

func notNull(raw json.RawMessage) json.RawMessage {
	if string(raw) == "null" {
		return nil
	}
	return raw
}

func errNotQueued() error {
	return core.Errorf(core.CodeNotFound, "no message is queued in this conversation; its run may have started")
}

// beginQueued removes a message from the queue because it is being appended.
func beginQueued(ctx context.Context, tx *sql.Tx, key int64, id string) error {
	return database.Change(ctx, tx, errNotQueued(), `DELETE FROM queued WHERE conversation = $1 AND id = $2`, key, id)
}

// takeQueued removes and returns a conversation's queued message, if nobody has held it since the given time. It
// returns one message or none.
func takeQueued(ctx context.Context, tx *sql.Tx, key int64, since time.Time) ([]message, error) {
	return leftQueued(tx.QueryRowContext(ctx, `DELETE FROM queued WHERE conversation = $1 AND held_until <= $2 RETURNING id, message`, key, database.Millis(since)))
}

// readQueued returns a conversation's queued message, if nobody holds it.
func readQueued(ctx context.Context, tx *sql.Tx, key int64) ([]message, error) {
	return leftQueued(tx.QueryRowContext(ctx, `SELECT id, message FROM queued WHERE conversation = $1 AND held_until <= $2`, key, database.Millis(time.Now())))
}

func leftQueued(row *sql.Row) ([]message, error) {
	q, err := scanQueued(row)
	if core.CodeOf(err) == core.CodeNotFound {
		return nil, nil
	}
	return prepare([]core.Message{q.Message}, time.Now()), err
}
