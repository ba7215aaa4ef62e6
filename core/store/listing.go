package store

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/store/database"
	"github.com/ropewalk/ropewalk/core/store/search"
)

const (
	defaultLimit = 20
	maxLimit     = 100
)

// Conversations returns a page of a person's conversations in a workspace. The error is core.CodeBadRequest for an
// invalid cursor, order or limit. A cursor is valid only for the order and search that it came from.
func (s *Store) Conversations(ctx context.Context, workspace, owner string, q core.ConversationQuery) (core.ConversationPage, error) {
	l, err := newListing(workspace, owner, q)
	if err != nil {
		return core.ConversationPage{}, err
	}
	l.page.Numbered = selectNumbered(s.db.Kind())
	var page core.ConversationPage
	err = s.db.View(ctx, "listing conversations", func(ctx context.Context, tx *sql.Tx) error {
		page, err = l.read(ctx, tx, s.index)
		return err
	})
	return page, err
}

// selectNumbered returns the part of a SELECT after the columns. It selects the conversations c in the collection $1
// with their numbers in the JSON array $2. The planner must use individual lookups regardless of its statistics, even
// if one collection is much larger than the others.
func selectNumbered(kind database.Kind) string {
	if kind == database.PostgreSQL {
		return ` FROM json_array_elements_text(CAST($2 AS JSON)) n CROSS JOIN LATERAL
			(SELECT * FROM conversations WHERE collection = $1 AND number = CAST(n.value AS BIGINT) LIMIT 1) c WHERE TRUE`
	}
	// CROSS JOIN keeps the order of the tables.
	return ` FROM json_each($2) n CROSS JOIN conversations c WHERE c.collection = $1 AND c.number = n.value`
}

// listing reads one page.
type listing struct {
	workspace, owner string
	page             search.Page
	searched         bool
	cursor           cursor
}

// cursor identifies the last conversation of the previous page.
type cursor struct {
	SortBy core.ConversationSort `json:"s"`
	Search string                `json:"q,omitempty"`
	Total  int                   `json:"n"` // the total of a search, which is counted once
	At     int64                 `json:"t"`
	Key    int64                 `json:"k"`
}

func newListing(workspace, owner string, q core.ConversationQuery) (*listing, error) {
	l := &listing{workspace: workspace, owner: owner}
	l.page.Limit = cmp.Or(q.Limit, defaultLimit)
	if l.page.Limit < 1 || l.page.Limit > maxLimit {
		return nil, core.Errorf(core.CodeBadRequest, "limit must be between 1 and %d", maxLimit)
	}
	switch q.SortBy {
	case "", core.SortByUpdated:
		q.SortBy, l.page.Column = core.SortByUpdated, "updated_at"
	case core.SortByCreated:
		l.page.Column = "created_at"
	default:
		return nil, core.Errorf(core.CodeBadRequest, "sortBy must be %s or %s", core.SortByUpdated, core.SortByCreated)
	}
	l.cursor = cursor{SortBy: q.SortBy, Search: q.Search}
	if q.Cursor != "" {
		if err := l.cursor.decode(q.Cursor); err != nil {
			return nil, err
		}
	}
	l.page.After = search.Position{At: l.cursor.At, Key: l.cursor.Key}
	l.page.Terms, l.searched = search.Terms(q.Search), strings.TrimSpace(q.Search) != ""
	return l, nil
}

func (c *cursor) decode(text string) error {
	var from cursor
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(raw, &from)
	}
	if err != nil || from.At == 0 || from.SortBy != c.SortBy || from.Search != c.Search {
		return core.Errorf(core.CodeBadRequest, "cursor is not from this list with the same sortBy and search; omit it to start over")
	}
	*c = from
	return nil
}

// after encodes the cursor for the page after a conversation.
func (c cursor) after(last core.Conversation) (string, error) {
	c.At = database.Millis(last.UpdatedAt)
	if c.SortBy == core.SortByCreated {
		c.At = database.Millis(last.CreatedAt)
	}
	var err error
	if c.Key, err = conversationKey(last.ID); err != nil {
		return "", err
	}
	raw, err := json.Marshal(c)
	return base64.RawURLEncoding.EncodeToString(raw), err
}

func (l *listing) read(ctx context.Context, tx *sql.Tx, index *search.Index) (core.ConversationPage, error) {
	page := core.ConversationPage{Conversations: []core.Conversation{}}
	err := tx.QueryRowContext(ctx, `SELECT id, conversations FROM collections WHERE workspace = $1 AND owner = $2`, l.workspace, l.owner).
		Scan(&l.page.Collection, &l.page.Size)
	if errors.Is(err, sql.ErrNoRows) || err == nil && l.searched && len(l.page.Terms) == 0 { // no conversations, or nothing to search for
		return page, nil
	}
	if err != nil {
		return page, err
	}
	page.TotalCount = l.page.Size
	from, args := search.All, []any{l.page.Collection}
	if l.searched {
		numbers, total, err := index.Find(ctx, tx, &l.page)
		if page.TotalCount = total; l.page.After.At != 0 {
			page.TotalCount = l.cursor.Total
		}
		if err != nil || len(numbers) == 0 {
			return page, err
		}
		from, args = l.page.Numbered, append(args, database.JSONList(numbers))
	}
	page.Conversations, err = l.readRows(ctx, tx, from, args)
	if err == nil && l.searched {
		err = l.addPassages(ctx, tx, page.Conversations[:min(len(page.Conversations), l.page.Limit)])
	}
	if err != nil || len(page.Conversations) <= l.page.Limit {
		return page, err
	}
	page.Conversations = page.Conversations[:l.page.Limit]
	l.cursor.Total = page.TotalCount
	page.NextCursor, err = l.cursor.after(page.Conversations[l.page.Limit-1])
	return page, err
}

const maxPassageText = 8 << 20 // bytes that are read for the passages of a page

// addPassages adds to each conversation the first passage that the search found in its messages, as long as they are
// not too large in total.
func (l *listing) addPassages(ctx context.Context, tx *sql.Tx, found []core.Conversation) error {
	left := maxPassageText
	for i := range found {
		key, err := conversationKey(found[i].ID)
		if err != nil {
			return err
		}
		if found[i].Passage, err = l.passage(ctx, tx, key, &left); err != nil {
			return err
		}
	}
	return nil
}

func (l *listing) passage(ctx context.Context, tx *sql.Tx, key int64, left *int) (string, error) {
	rows, err := tx.QueryContext(ctx, `SELECT content, metadata FROM messages WHERE conversation = $1 ORDER BY position`, key)
	if err != nil {
		return "", err
	}
	defer func() { _ = rows.Close() }()
	for *left > 0 && rows.Next() {
		var m message
		var metadata *string
		if err := rows.Scan(&m.Content, &metadata); err != nil {
			return "", err
		}
		m.Metadata = rawJSON(metadata)
		*left -= len(m.Content) + len(m.Metadata)
		for _, text := range contents([]message{m}) {
			if passage := search.Passage(text, l.page.Terms); passage != "" {
				return passage, nil
			}
		}
	}
	return "", rows.Err()
}

// readRows returns the conversations of the page, and one more if there is one.
func (l *listing) readRows(ctx context.Context, tx *sql.Tx, from string, args []any) ([]core.Conversation, error) {
	rows, err := l.page.Query(ctx, tx, conversationColumns+from, args, l.page.After, l.page.Limit+1)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	found := []core.Conversation{}
	for rows.Next() {
		c, err := scanConversation(rows, l.workspace, l.owner)
		if err != nil {
			return nil, err
		}
		found = append(found, c)
	}
	return found, rows.Err()
}
