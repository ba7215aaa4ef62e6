package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/store/database"
	"github.com/ropewalk/ropewalk/core/store/search"
)

const conversationPrefix = "conv_"

// conversationKey returns the number in a conversation's id. The error is core.CodeNotFound if id is not a valid id.
func conversationKey(id string) (int64, error) {
	digits, _ := strings.CutPrefix(id, conversationPrefix)
	n, err := strconv.ParseUint(digits, 16, 64)
	if err != nil || conversationID(int64(n)) != id { // capitals, signs, too few digits
		return 0, noConversation(id)
	}
	return int64(n), nil
}

func conversationID(key int64) string { return fmt.Sprintf("%s%016x", conversationPrefix, uint64(key)) }

func noConversation(id string) error {
	return core.Errorf(core.CodeNotFound, "you have no conversation %.100q in this workspace", id)
}

func randomKey() int64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return int64(binary.NativeEndian.Uint64(b[:]))
}

// CreateConversation creates an empty conversation for c.Owner in c.Workspace, with c's title, metadata and disabled
// apps. Owner and workspace must exist. It returns the conversation with the other fields filled in.
func (s *Store) CreateConversation(ctx context.Context, c core.Conversation) (core.Conversation, error) {
	var made core.Conversation
	err := s.db.UpdateGrouped(ctx, "creating a conversation", func(ctx context.Context, tx *sql.Tx) (err error) {
		made, err = s.createConversation(ctx, tx, c, time.Now())
		return err
	})
	return made, err
}

func (s *Store) createConversation(ctx context.Context, tx *sql.Tx, c core.Conversation, at time.Time) (core.Conversation, error) {
	collection, err := ensureCollection(ctx, tx, c.Workspace, c.Owner)
	if err != nil {
		return core.Conversation{}, err
	}
	key := randomKey()
	made := core.Conversation{
		ID: conversationID(key), Workspace: c.Workspace, Owner: c.Owner, Title: clean(c.Title), Metadata: c.Metadata, DisabledApps: c.DisabledApps,
		CreatedAt: database.FromMillis(database.Millis(at)), UpdatedAt: database.FromMillis(database.Millis(at)),
	}
	var number int64
	if err := tx.QueryRowContext(ctx, `
		UPDATE collections SET conversations = conversations + 1, last_number = last_number + 1 WHERE id = $1 RETURNING last_number`, collection).Scan(&number); err != nil {
		return core.Conversation{}, err
	}
	if err := s.allowConversation(ctx, tx, collection); err != nil {
		return core.Conversation{}, err
	}
	if _, err := tx.ExecContext(ctx, `
		INSERT INTO conversations (id, collection, number, title, metadata, last_model, created_at, updated_at, message_count, preview, input_tokens, output_tokens, bytes,
			disabled_apps)
		VALUES ($1, $2, $3, $4, $5, '', $6, $6, 0, '', 0, 0, $7, $8)`,
		key, collection, number, made.Title, nullableJSON(made.Metadata), database.Millis(at), len(made.Title)+len(made.Metadata), namesJSON(made.DisabledApps)); err != nil {
		return core.Conversation{}, err
	}
	return made, s.index.Add(ctx, tx, search.Document{Collection: collection, Key: key, Number: number}, made.Title)
}

// ensureCollection returns the key of a person's collection of conversations in a workspace, which it creates if needed.
func ensureCollection(ctx context.Context, tx *sql.Tx, workspace, owner string) (int64, error) {
	if _, err := tx.ExecContext(ctx, `
		INSERT INTO collections (id, workspace, owner, conversations) VALUES ($1, $2, $3, 0)
		ON CONFLICT (workspace, owner) DO NOTHING`, randomKey(), workspace, owner); err != nil {
		return 0, err
	}
	var collection int64
	err := tx.QueryRowContext(ctx, `SELECT id FROM collections WHERE workspace = $1 AND owner = $2`, workspace, owner).Scan(&collection)
	return collection, err
}

// findConversation returns the keys of a conversation and its collection. The error is core.CodeNotFound unless it
// exists and belongs to ref.Owner. lock is appended to the SELECT in a transaction that will change the conversation.
func findConversation(ctx context.Context, q database.Querier, ref core.ConversationRef, lock string) (key, collection int64, err error) {
	if key, err = conversationKey(ref.ID); err != nil {
		return 0, 0, err
	}
	err = q.QueryRowContext(ctx, `
		SELECT c.collection FROM conversations c JOIN collections s ON s.id = c.collection
		WHERE c.id = $1 AND s.workspace = $2 AND s.owner = $3 `+lock, key, ref.Workspace, ref.Owner).Scan(&collection)
	return key, collection, database.Missing(err, noConversation(ref.ID))
}

// conversationColumns are the columns that scanConversation reads, in order, before any other columns.
const conversationColumns = `c.id, c.title, c.metadata, c.last_model, c.created_at, c.updated_at,
	c.message_count, c.preview, c.input_tokens, c.output_tokens, c.cost_usd, c.disabled_apps`

func scanConversation(row database.Row, workspace, owner string, more ...any) (core.Conversation, error) {
	c := core.Conversation{Workspace: workspace, Owner: owner}
	var key, created, updated int64
	var metadata, disabled *string
	err := row.Scan(append([]any{&key, &c.Title, &metadata, &c.LastModel, &created, &updated,
		&c.MessageCount, &c.Preview, &c.InputTokens, &c.OutputTokens, &c.CostUSD, &disabled}, more...)...)
	if err == nil && disabled != nil {
		err = json.Unmarshal([]byte(*disabled), &c.DisabledApps)
	}
	c.ID, c.CreatedAt, c.UpdatedAt, c.Metadata = conversationID(key), database.FromMillis(created), database.FromMillis(updated), rawJSON(metadata)
	return c, err
}

// Conversation returns a conversation. The error is core.CodeNotFound unless it exists and belongs to ref.Owner.
func (s *Store) Conversation(ctx context.Context, ref core.ConversationRef) (core.Conversation, error) {
	var c core.Conversation
	err := s.db.Read(ctx, "reading a conversation", func(ctx context.Context, q database.Querier) (err error) {
		c, err = readConversation(ctx, q, ref)
		return err
	})
	return c, err
}

func readConversation(ctx context.Context, q database.Querier, ref core.ConversationRef) (core.Conversation, error) {
	key, err := conversationKey(ref.ID)
	if err != nil {
		return core.Conversation{}, err
	}
	c, err := scanConversation(q.QueryRowContext(ctx, `SELECT `+conversationColumns+`
		FROM conversations c JOIN collections s ON s.id = c.collection
		WHERE c.id = $1 AND s.workspace = $2 AND s.owner = $3`, key, ref.Workspace, ref.Owner), ref.Workspace, ref.Owner)
	return c, database.Missing(err, noConversation(ref.ID))
}

// UpdateConversation changes the title, metadata and disabled apps, and returns the changed conversation. The error is
// core.CodeNotFound unless it exists and belongs to ref.Owner.
func (s *Store) UpdateConversation(ctx context.Context, ref core.ConversationRef, p core.ConversationPatch) (core.Conversation, error) {
	var changed core.Conversation
	err := s.db.Update(ctx, "changing a conversation", func(ctx context.Context, tx *sql.Tx) error {
		key, collection, err := findConversation(ctx, tx, ref, s.db.LockRow())
		if err != nil {
			return err
		}
		if p.OnlyUntitled {
			if before, err := readConversation(ctx, tx, ref); err != nil || before.Title != "" {
				changed = before
				return err
			}
		}
		if p.Metadata != nil {
			if _, err := tx.ExecContext(ctx, `UPDATE conversations SET bytes = bytes - COALESCE(LENGTH(metadata), 0) + $3, metadata = $1 WHERE id = $2`,
				nullableJSON(p.Metadata), key, len(p.Metadata)); err != nil {
				return err
			}
			if err := s.allowBytes(ctx, tx, collection); err != nil {
				return err
			}
		}
		if p.DisabledApps != nil {
			if _, err := tx.ExecContext(ctx, `UPDATE conversations SET disabled_apps = $1 WHERE id = $2`, namesJSON(p.DisabledApps), key); err != nil {
				return err
			}
		}
		if p.Title != nil {
			if err := s.retitle(ctx, tx, collection, key, clean(*p.Title)); err != nil {
				return err
			}
		}
		changed, err = readConversation(ctx, tx, ref)
		return err
	})
	return changed, err
}

// retitle changes a title, and removes words from the search index that only the old title contains.
func (s *Store) retitle(ctx context.Context, tx *sql.Tx, collection, key int64, title string) error {
	d := search.Document{Collection: collection, Key: key}
	var old string
	if err := tx.QueryRowContext(ctx, `SELECT number, title FROM conversations WHERE id = $1`, key).Scan(&d.Number, &old); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, `UPDATE conversations SET bytes = bytes - LENGTH(title) + $3, title = $1 WHERE id = $2`, title, key, len(title)); err != nil {
		return err
	}
	return s.index.Replace(ctx, tx, d, old, title, func() ([]string, error) {
		all, err := readMessages(ctx, tx, key, -1)
		return contents(all), err
	})
}

// DeleteConversation deletes a conversation and its messages, but not its usage records. The error is
// core.CodeNotFound unless it exists and belongs to ref.Owner.
func (s *Store) DeleteConversation(ctx context.Context, ref core.ConversationRef) error {
	return s.db.Update(ctx, "deleting a conversation", func(ctx context.Context, tx *sql.Tx) error {
		key, collection, err := findConversation(ctx, tx, ref, s.db.LockRow())
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `UPDATE collections SET conversations = conversations - 1 WHERE id = $1`, collection); err != nil {
			return err
		}
		if err := s.removeFromIndex(ctx, tx, collection, key); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `DELETE FROM conversations WHERE id = $1`, key)
		return err
	})
}

// removeFromIndex removes a conversation from the compacted part of its collection's search index. The
// transaction must have locked the collection.
func (s *Store) removeFromIndex(ctx context.Context, tx *sql.Tx, collection, key int64) error {
	d := search.Document{Collection: collection, Key: key}
	var title string
	var compacted bool
	if err := tx.QueryRowContext(ctx, `SELECT number, title, EXISTS (SELECT 1 FROM word_sets WHERE collection = $2)
		FROM conversations WHERE id = $1`, key, collection).Scan(&d.Number, &title, &compacted); err != nil || !compacted {
		return err
	}
	all, err := readMessages(ctx, tx, key, -1)
	if err != nil {
		return err
	}
	return s.index.RemoveFromSets(ctx, tx, d, append(contents(all), title)...)
}

// nullableJSON returns JSON in its stored form: NULL if there is none.
func nullableJSON(raw json.RawMessage) *string {
	if len(raw) == 0 {
		return nil
	}
	text := string(raw)
	return &text
}

// namesJSON returns a list of names in its stored form: NULL if it is empty.
func namesJSON(names []string) *string {
	if len(names) == 0 {
		return nil
	}
	raw, _ := json.Marshal(names) // cannot fail for strings
	return nullableJSON(raw)
}

func rawJSON(text *string) json.RawMessage {
	if text == nil {
		return nil
	}
	return json.RawMessage(*text)
}
