package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/store/database"
)

// SaveUnfinished stores the output of a run's current turn so far, and replaces the output that was saved before; nil
// deletes it. The next AppendMessages of the run deletes it too. If a killed server leaves an unfinished turn behind,
// it becomes a message: Messages returns it as unfinished, and the user's next message is stored after it.
//
// The error is core.CodeNotFound unless the conversation exists and belongs to ref.Owner.
func (s *Store) SaveUnfinished(ctx context.Context, ref core.ConversationRef, m *core.Message) error {
	return s.db.UpdateGrouped(ctx, "saving a part of an answer", func(ctx context.Context, tx *sql.Tx) error {
		key, _, err := findConversation(ctx, tx, ref, s.db.LockRow())
		if err != nil {
			return err
		}
		if m == nil {
			_, err = tx.ExecContext(ctx, `DELETE FROM unfinished WHERE conversation = $1`, key)
			return err
		}
		_, err = tx.ExecContext(ctx, `
			INSERT INTO unfinished (conversation, content, blocks, metadata, said_at, continues) VALUES ($1, $2, $3, $4, $5, $6)
			ON CONFLICT (conversation) DO UPDATE SET content = excluded.content, blocks = excluded.blocks, metadata = excluded.metadata,
				said_at = excluded.said_at, continues = excluded.continues`,
			key, clean(m.Content), nullableJSON(m.Blocks), nullableJSON(m.Metadata), database.Millis(m.Timestamp), flag(m.Continues))
		return err
	})
}

// EndUnfinished converts the unfinished answers and queued messages that killed servers left behind into ordinary
// messages. It is called at startup.
func (s *Store) EndUnfinished(ctx context.Context) error {
	return s.db.Update(ctx, "keeping answers that a killed server left behind", func(ctx context.Context, tx *sql.Tx) error {
		places, err := leftBehind(ctx, tx, s.heldBefore())
		if err != nil {
			return err
		}
		for _, p := range places {
			left, err := takeUnfinished(ctx, tx, p.key)
			if err == nil {
				var queued []message
				queued, err = takeQueued(ctx, tx, p.key, s.heldBefore())
				left = append(left, queued...)
			}
			if err == nil && len(left) > 0 {
				_, err = s.appendMessages(ctx, tx, p.collection, p.key, left, spent{}, left[0].Timestamp)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// place holds the keys of a conversation and its collection.
type place struct{ key, collection int64 }

// heldBefore returns a time: a queued message is still waiting only if it is held past that time. If the state is an
// SQLite file, no server holds a message at startup.
func (s *Store) heldBefore() time.Time {
	if s.Shared() {
		return time.Now()
	}
	return time.Unix(1<<40, 0)
}

// leftBehind returns the conversations without a run that have something unfinished, or a queued message that is not
// held past the given time.
func leftBehind(ctx context.Context, tx *sql.Tx, held time.Time) ([]place, error) {
	return database.Collect(ctx, tx, `SELECT c.id, c.collection FROM conversations c
		WHERE c.id IN (SELECT conversation FROM unfinished UNION SELECT conversation FROM queued WHERE held_until <= $2)
		AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.conversation = c.id AND r.held_until > $1)`, []any{database.Millis(time.Now()), database.Millis(held)}, func(row database.Row) (p place, err error) {
		return p, row.Scan(&p.key, &p.collection)
	})
}

const unfinishedColumns = `content, blocks, metadata, said_at, continues`

// takeUnfinished removes and returns the unfinished message of a conversation: one message or none.
func takeUnfinished(ctx context.Context, tx *sql.Tx, key int64) ([]message, error) {
	return scanUnfinished(tx.QueryRowContext(ctx, `DELETE FROM unfinished WHERE conversation = $1 RETURNING `+unfinishedColumns, key))
}

// readUnfinished returns the unfinished message of a conversation, and whether a run is in progress there on any server
// that has a claim in the database.
func readUnfinished(ctx context.Context, tx *sql.Tx, key int64) (found []message, claimed bool, err error) {
	found, err = scanUnfinished(tx.QueryRowContext(ctx, `SELECT `+unfinishedColumns+` FROM unfinished WHERE conversation = $1`, key))
	if err != nil || len(found) == 0 {
		return nil, false, err
	}
	var holders int
	err = tx.QueryRowContext(ctx, `SELECT COUNT(*) FROM runs WHERE conversation = $1 AND held_until > $2`, key, database.Millis(time.Now())).Scan(&holders)
	return found, holders > 0, err
}

func scanUnfinished(row *sql.Row) ([]message, error) {
	m := message{Message: core.Message{Role: "assistant"}}
	var blocks, metadata *string
	var at int64
	var continues int
	err := row.Scan(&m.Content, &blocks, &metadata, &at, &continues)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	m.Blocks, m.Metadata, m.Timestamp, m.Continues = rawJSON(blocks), rawJSON(metadata), database.FromMillis(at), continues == 1
	return []message{m}, err
}
