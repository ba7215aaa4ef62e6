package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

const conversationPrefix = "conv_"

// conversationKey is the number in a conversation's id. What has not the form of an id is the key of
// no conversation.
func conversationKey(id string) (int64, error) {
	digits, _ := strings.CutPrefix(id, conversationPrefix)
	n, err := strconv.ParseUint(digits, 16, 64)
	if err != nil || conversationID(int64(n)) != id { // capitals, signs, too few digits
		return 0, noConversation()
	}
	return int64(n), nil
}

func conversationID(key int64) string { return fmt.Sprintf("%s%016x", conversationPrefix, uint64(key)) }

func noConversation() error { return core.Errorf(core.CodeNotFound, "there is no such conversation") }

func randomKey() int64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return int64(binary.NativeEndian.Uint64(b[:]))
}

// CreateConversation makes an empty conversation of c.Owner in c.Workspace, both of which must
// exist, with c's title and metadata; the rest is filled in.
func (s *Store) CreateConversation(ctx context.Context, c core.Conversation) (core.Conversation, error) {
	var made core.Conversation
	err := s.changeShared(ctx, "making a conversation", func(tx *sql.Tx) (err error) {
		made, err = s.dialect.createConversation(ctx, tx, c, time.Now())
		return err
	})
	return made, err
}

func (d dialect) createConversation(ctx context.Context, tx *sql.Tx, c core.Conversation, at time.Time) (core.Conversation, error) {
	shelf, err := ensureShelf(ctx, tx, c.Workspace, c.Owner)
	if err != nil {
		return core.Conversation{}, err
	}
	key := randomKey()
	made := core.Conversation{
		ID: conversationID(key), Workspace: c.Workspace, Owner: c.Owner, Title: clean(c.Title), Metadata: c.Metadata,
		CreatedAt: fromMillis(millis(at)), UpdatedAt: fromMillis(millis(at)),
	}
	var number int64
	if err := tx.QueryRowContext(ctx, `
		UPDATE shelves SET conversations = conversations + 1, numbered = numbered + 1 WHERE id = $1 RETURNING numbered`, shelf).Scan(&number); err != nil {
		return core.Conversation{}, err
	}
	if _, err := tx.ExecContext(ctx, `
		INSERT INTO conversations (id, shelf, number, title, metadata, last_model, created_at, updated_at, message_count, preview, input_tokens, output_tokens)
		VALUES ($1, $2, $3, $4, $5, '', $6, $6, 0, '', 0, 0)`,
		key, shelf, number, made.Title, document(made.Metadata), millis(at)); err != nil {
		return core.Conversation{}, err
	}
	return made, d.index(ctx, tx, shelf, key, number, made.Title)
}

// ensureShelf returns the key of a person's conversations in a workspace.
func ensureShelf(ctx context.Context, tx *sql.Tx, workspace, owner string) (int64, error) {
	if _, err := tx.ExecContext(ctx, `
		INSERT INTO shelves (id, workspace, owner, conversations) VALUES ($1, $2, $3, 0)
		ON CONFLICT (workspace, owner) DO NOTHING`, randomKey(), workspace, owner); err != nil {
		return 0, err
	}
	var shelf int64
	err := tx.QueryRowContext(ctx, `SELECT id FROM shelves WHERE workspace = $1 AND owner = $2`, workspace, owner).Scan(&shelf)
	return shelf, err
}

// querier is a transaction, or a database outside of any.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// find returns the keys of a conversation and its shelf; core.CodeNotFound unless it is there and
// its owner's. lock is "FOR UPDATE" where the conversation is about to change.
func find(ctx context.Context, q querier, ref core.ConversationRef, lock string) (key, shelf int64, err error) {
	if key, err = conversationKey(ref.ID); err != nil {
		return 0, 0, err
	}
	err = q.QueryRowContext(ctx, `
		SELECT c.shelf FROM conversations c JOIN shelves s ON s.id = c.shelf
		WHERE c.id = $1 AND s.workspace = $2 AND s.owner = $3 `+lock, key, ref.Workspace, ref.Owner).Scan(&shelf)
	if errors.Is(err, sql.ErrNoRows) {
		err = noConversation()
	}
	return key, shelf, err
}

// conversationColumns is what scanConversation reads, in its order, before what is read besides.
const conversationColumns = `c.id, c.title, c.metadata, c.last_model, c.created_at, c.updated_at,
	c.message_count, c.preview, c.input_tokens, c.output_tokens, c.cost_usd`

func scanConversation(row interface{ Scan(...any) error }, workspace, owner string, besides ...any) (core.Conversation, error) {
	c := core.Conversation{Workspace: workspace, Owner: owner}
	var key, created, updated int64
	var metadata *string
	err := row.Scan(append([]any{&key, &c.Title, &metadata, &c.LastModel, &created, &updated,
		&c.MessageCount, &c.Preview, &c.InputTokens, &c.OutputTokens, &c.CostUSD}, besides...)...)
	c.ID, c.CreatedAt, c.UpdatedAt, c.Metadata = conversationID(key), fromMillis(created), fromMillis(updated), rawJSON(metadata)
	return c, err
}

// Conversation returns one; core.CodeNotFound unless it is there and its owner's.
func (s *Store) Conversation(ctx context.Context, ref core.ConversationRef) (core.Conversation, error) {
	return conversation(ctx, s.read, ref)
}

func conversation(ctx context.Context, q querier, ref core.ConversationRef) (core.Conversation, error) {
	key, err := conversationKey(ref.ID)
	if err != nil {
		return core.Conversation{}, err
	}
	c, err := scanConversation(q.QueryRowContext(ctx, `SELECT `+conversationColumns+`
		FROM conversations c JOIN shelves s ON s.id = c.shelf
		WHERE c.id = $1 AND s.workspace = $2 AND s.owner = $3`, key, ref.Workspace, ref.Owner), ref.Workspace, ref.Owner)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return core.Conversation{}, noConversation()
	case err != nil:
		return core.Conversation{}, fmt.Errorf("reading a conversation: %w", explain(err))
	}
	return c, nil
}

// UpdateConversation changes title and metadata, and returns the conversation as it is then.
// core.CodeNotFound unless it is there and its owner's.
func (s *Store) UpdateConversation(ctx context.Context, ref core.ConversationRef, p core.ConversationPatch) (core.Conversation, error) {
	var changed core.Conversation
	err := s.change(ctx, "changing a conversation", func(tx *sql.Tx) error {
		key, shelf, err := find(ctx, tx, ref, s.dialect.lockRow)
		if err != nil {
			return err
		}
		if p.Metadata != nil {
			if _, err := tx.ExecContext(ctx, `UPDATE conversations SET metadata = $1 WHERE id = $2`, document(p.Metadata), key); err != nil {
				return err
			}
		}
		if p.Title != nil {
			if err := s.dialect.retitle(ctx, tx, shelf, key, clean(*p.Title)); err != nil {
				return err
			}
		}
		changed, err = conversation(ctx, tx, ref)
		return err
	})
	return changed, err
}

// retitle changes a title and makes the search forget what only the old one said.
func (d dialect) retitle(ctx context.Context, tx *sql.Tx, shelf, key int64, title string) error {
	var number int64
	var old string
	if err := tx.QueryRowContext(ctx, `SELECT number, title FROM conversations WHERE id = $1`, key).Scan(&number, &old); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, `UPDATE conversations SET title = $1 WHERE id = $2`, title, key); err != nil {
		return err
	}
	if gone := distinct(old); len(gone) > 0 {
		if err := lockShelf(ctx, tx, shelf); err != nil {
			return err
		}
		said, err := messages(ctx, tx, key, -1)
		if err != nil {
			return err
		}
		stays := distinct(append(contents(said), title)...)
		gone = slices.DeleteFunc(gone, func(word string) bool { _, found := slices.BinarySearch(stays, word); return found })
		for _, word := range gone {
			if _, err := tx.ExecContext(ctx, `DELETE FROM words WHERE conversation = $1 AND word = $2`, key, []byte(word)); err != nil {
				return err
			}
		}
		if err := d.unpack(ctx, tx, shelf, number, gone); err != nil {
			return err
		}
	}
	return d.index(ctx, tx, shelf, key, number, title)
}

// DeleteConversation forgets a conversation and its messages; what it used stays in the usage.
// core.CodeNotFound unless it is there and its owner's.
func (s *Store) DeleteConversation(ctx context.Context, ref core.ConversationRef) error {
	return s.change(ctx, "deleting a conversation", func(tx *sql.Tx) error {
		key, shelf, err := find(ctx, tx, ref, s.dialect.lockRow)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `UPDATE shelves SET conversations = conversations - 1 WHERE id = $1`, shelf); err != nil {
			return err
		}
		if err := s.dialect.unpackAll(ctx, tx, shelf, key); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `DELETE FROM conversations WHERE id = $1`, key)
		return err
	})
}

// unpackAll takes all words of a conversation out of what is packed of its shelf, which the
// transaction must have locked.
func (d dialect) unpackAll(ctx context.Context, tx *sql.Tx, shelf, key int64) error {
	var number int64
	var title string
	var packed bool
	if err := tx.QueryRowContext(ctx, `SELECT number, title, EXISTS (SELECT 1 FROM packed_words WHERE shelf = $2)
		FROM conversations WHERE id = $1`, key, shelf).Scan(&number, &title, &packed); err != nil || !packed {
		return err
	}
	said, err := messages(ctx, tx, key, -1)
	if err != nil {
		return err
	}
	return d.unpack(ctx, tx, shelf, number, distinct(append(contents(said), title)...))
}

// document is JSON as it is kept: nothing at all for none.
func document(raw json.RawMessage) *string {
	if len(raw) == 0 {
		return nil
	}
	text := string(raw)
	return &text
}

func rawJSON(text *string) json.RawMessage {
	if text == nil {
		return nil
	}
	return json.RawMessage(*text)
}
