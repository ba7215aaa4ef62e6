package store

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/store/database"
	"github.com/ropewalk/ropewalk/core/store/search"
)

const previewLength = 160 // characters

// AppendMessages adds messages and the usage of their model calls to the end of a conversation, and returns
// the changed conversation. All of it is stored, or nothing. The conversation's totals increase, and the usage
// is recorded for the conversation, its workspace and its owner, even if used names others. A missing time
// means now. Usage without a message is allowed, because an interrupted call also costs something. A message
// with Queued set leaves the queue.
//
// The error is core.CodeNotFound unless the conversation exists and belongs to ref.Owner, and for a queued message
// that was withdrawn.
func (s *Store) AppendMessages(ctx context.Context, ref core.ConversationRef, add []core.Message, used ...core.Usage) (core.Conversation, error) {
	var changed core.Conversation
	err := s.db.UpdateGrouped(ctx, "adding to a conversation", func(ctx context.Context, tx *sql.Tx) error {
		key, collection, err := findConversation(ctx, tx, ref, s.db.LockRow())
		if err != nil {
			return err
		}
		now := time.Now()
		for _, u := range used {
			u.Workspace, u.User, u.Conversation = ref.Workspace, ref.Owner, ref.ID
			if err := putUsage(ctx, tx, u, now); err != nil {
				return err
			}
		}
		all := prepare(add, now)
		left, err := takeUnfinished(ctx, tx, key)
		if err != nil {
			return err
		}
		if len(add) > 0 && add[0].Role == "user" { // also keep what the run of a killed server left behind
			if add[0].Queued != "" {
				if err := beginQueued(ctx, tx, key, add[0].Queued); err != nil {
					return err
				}
			}
			queued, err := takeQueued(ctx, tx, key, now)
			if err != nil {
				return err
			}
			all = append(append(left, queued...), all...)
		}
		changed, err = s.appendMessages(ctx, tx, collection, key, all, spending(used), now)
		changed.Workspace, changed.Owner = ref.Workspace, ref.Owner
		return err
	})
	return changed, err
}

// Messages returns the messages of a conversation, in order. The error is core.CodeNotFound unless the conversation
// exists and belongs to ref.Owner.
func (s *Store) Messages(ctx context.Context, ref core.ConversationRef) ([]core.Message, error) {
	out := []core.Message{}
	err := s.db.View(ctx, "reading a conversation", func(ctx context.Context, tx *sql.Tx) error {
		key, _, err := findConversation(ctx, tx, ref, "")
		if err != nil {
			return err
		}
		all, err := readMessages(ctx, tx, key, -1)
		if err != nil {
			return err
		}
		for _, m := range all {
			out = append(out, m.Message)
		}
		left, claimed, err := readUnfinished(ctx, tx, key)
		for _, m := range left {
			m.Unfinished, m.Claimed = true, claimed
			out = append(out, m.Message)
		}
		if err != nil || claimed {
			return err
		}
		queued, err := readQueued(ctx, tx, key)
		for _, m := range queued {
			m.Attachments = nil
			out = append(out, m.Message)
		}
		return err
	})
	return out, err
}

// ForkConversation creates a conversation of the same owner from the start of another: its first atMessage
// messages, or all if there are fewer or atMessage is negative. The fork has the same title and metadata, and the
// totals of the copied messages. Usage is not recorded again.
//
// The error is core.CodeNotFound unless the conversation exists and belongs to ref.Owner.
func (s *Store) ForkConversation(ctx context.Context, ref core.ConversationRef, atMessage int) (core.Conversation, error) {
	var fork core.Conversation
	err := s.db.Update(ctx, "forking a conversation", func(ctx context.Context, tx *sql.Tx) error {
		from, err := readConversation(ctx, tx, ref)
		if err != nil {
			return err
		}
		key, collection, err := findConversation(ctx, tx, ref, "")
		if err != nil {
			return err
		}
		copied, err := readMessages(ctx, tx, key, atMessage)
		if err != nil {
			return err
		}
		if left, claimed, err := readUnfinished(ctx, tx, key); err != nil {
			return err
		} else if !claimed && (atMessage < 0 || atMessage > countMessages(copied)) {
			copied = append(copied, left...)
		}
		now := time.Now()
		if fork, err = s.createConversation(ctx, tx, from, now); err != nil {
			return err
		}
		source := key
		if key, err = conversationKey(fork.ID); err != nil {
			return err
		}
		var total spent
		for _, m := range copied {
			total = total.plus(m.spent)
		}
		if fork, err = s.appendMessages(ctx, tx, collection, key, copied, total, now); err != nil {
			return err
		}
		fork.Workspace, fork.Owner = ref.Workspace, ref.Owner
		if err := copyAttachments(ctx, tx, source, key, len(copied)); err != nil {
			return err
		}
		return s.allowBytes(ctx, tx, collection)
	})
	return fork, err
}

// message is a stored message, with the usage of its model calls, so that totals can be computed for a part of a
// conversation.
type message struct {
	core.Message
	spent spent
}

const intoMessages = `INSERT INTO messages
	(conversation, position, role, content, blocks, metadata, said_at, model, input_tokens, output_tokens, cost_usd, continues)`

// row returns the values of a message for intoMessages.
func (m message) row(conversation int64, position int) []any {
	return []any{conversation, position, m.Role, m.Content, nullableJSON(m.Blocks), nullableJSON(m.Metadata), database.Millis(m.Timestamp),
		m.spent.model, m.spent.input, m.spent.output, m.spent.cost, flag(m.Continues)}
}

// prepare converts messages for storage: it cleans the text and fills in missing times.
func prepare(add []core.Message, now time.Time) []message {
	out := make([]message, len(add))
	for i, m := range add {
		m.Content = clean(m.Content)
		if m.Timestamp.IsZero() {
			m.Timestamp = now
		}
		out[i].Message = m
	}
	return out
}

// appendMessages writes messages and returns the changed conversation. total is their usage. It is recorded with
// the last message, unless the messages have their own usage.
func (s *Store) appendMessages(ctx context.Context, tx *sql.Tx, collection, key int64, add []message, total spent, now time.Time) (core.Conversation, error) {
	if n := len(add); n > 0 && !slices.ContainsFunc(add, func(m message) bool { return m.spent != (spent{}) }) {
		add[n-1].spent = total
	}
	var number, bytes int64
	var position int
	changed, err := scanConversation(tx.QueryRowContext(ctx, `
		UPDATE conversations SET message_count = message_count + $2, preview = COALESCE(NULLIF($3, ''), preview),
			input_tokens = input_tokens + $4, output_tokens = output_tokens + $5,
			cost_usd = COALESCE(cost_usd + CAST($6 AS DOUBLE PRECISION), CAST($6 AS DOUBLE PRECISION), cost_usd),
			last_model = COALESCE(NULLIF($7, ''), last_model), updated_at = $8, bytes = bytes + $9
		WHERE id = $1 RETURNING `+strings.ReplaceAll(conversationColumns, "c.", "")+`, number, bytes,
			(SELECT COALESCE(MAX(position) + 1, 0) FROM messages WHERE conversation = $1)`,
		key, countMessages(add), preview(add), total.input, total.output, total.cost, total.model, database.Millis(now), sizeOf(add)), "", "", &number, &bytes, &position)
	if err == nil && startsRun(add) && bytes/bytesStep != (bytes-sizeOf(add))/bytesStep {
		err = s.allowBytes(ctx, tx, collection)
	}
	if err != nil {
		return changed, err
	}
	rows := database.Insert{Into: intoMessages}
	for i, m := range add {
		rows.Add(m.row(key, position+i)...)
	}
	if err := rows.Exec(ctx, tx); err != nil {
		return changed, err
	}
	if err := putAttachments(ctx, tx, key, position, add); err != nil {
		return changed, err
	}
	return changed, s.index.Add(ctx, tx, search.Document{Collection: collection, Key: key, Number: number}, contents(add)...)
}

// countMessages counts the messages that do not continue another.
func countMessages(all []message) (n int) {
	for _, m := range all {
		n += 1 - flag(m.Continues)
	}
	return n
}

func flag(set bool) int {
	if set {
		return 1
	}
	return 0
}

// readMessages reads the first limit messages of a conversation and those that continue them, or all if limit
// is negative.
func readMessages(ctx context.Context, q database.Querier, key int64, limit int) ([]message, error) {
	rows, err := q.QueryContext(ctx, `SELECT role, content, blocks, metadata, said_at, model, input_tokens, output_tokens, cost_usd, continues
		FROM messages WHERE conversation = $1 ORDER BY position`, key)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	var all []message
	for rows.Next() {
		var m message
		var blocks, metadata *string
		var at int64
		var continues int
		if err := rows.Scan(&m.Role, &m.Content, &blocks, &metadata, &at, &m.spent.model, &m.spent.input, &m.spent.output, &m.spent.cost, &continues); err != nil {
			return nil, err
		}
		if limit == 0 && continues == 0 {
			break
		}
		limit -= 1 - continues
		m.Blocks, m.Metadata, m.Timestamp, m.Continues = rawJSON(blocks), rawJSON(metadata), database.FromMillis(at), continues == 1
		all = append(all, m)
	}
	return all, rows.Err()
}

// spent is the usage of model calls.
type spent struct {
	model         string // the model of the last call
	input, output int64
	cost          *float64
}

func spending(used []core.Usage) (total spent) {
	for _, u := range used {
		total = total.plus(spent{u.Model, u.InputTokens, u.OutputTokens, u.CostUSD})
	}
	return total
}

func (s spent) plus(next spent) spent {
	return spent{cmp.Or(next.model, s.model), s.input + next.input, s.output + next.output, core.SumKnown(s.cost, next.cost)}
}

// preview returns the start of the latest message that is not empty, on one line.
func preview(all []message) string {
	for _, m := range slices.Backward(all) {
		if line := strings.Join(strings.Fields(m.Content[:min(len(m.Content), 8*previewLength)]), " "); line != "" {
			line = strings.ToValidUTF8(line, "")
			if runes := []rune(line); len(runes) > previewLength {
				return string(runes[:previewLength-1]) + "…"
			}
			return line
		}
	}
	return ""
}

// contents returns the texts that a search finds: the messages, and their tool results.
func contents(all []message) (texts []string) {
	for _, m := range all {
		texts = append(append(texts, m.Content), results(m.Metadata)...)
	}
	return texts
}

const maxResultText = 16_000 // bytes of one tool result; the rest is not searched

// results returns the texts of the tool results in the metadata of a message (docs/api.md, 6.2).
func results(metadata json.RawMessage) []string {
	var known struct {
		ToolCalls []struct {
			Output string `json:"output"`
		} `json:"toolCalls"`
	}
	if len(metadata) == 0 || json.Unmarshal(metadata, &known) != nil {
		return nil
	}
	texts := make([]string, 0, len(known.ToolCalls))
	for _, call := range known.ToolCalls {
		texts = append(texts, call.Output[:min(len(call.Output), maxResultText)])
	}
	return texts
}

// clean returns text in a form that every database accepts: valid UTF-8 without NUL.
func clean(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "�"), "\x00", "�")
}
