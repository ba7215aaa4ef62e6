package store

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/core"
)

const (
	defaultLimit = 20
	maxLimit     = 100

	manyFound = 2_000 // conversations of its rarest word from which on a search goes through lists
)

// Conversations returns a page of a person's conversations in a workspace. core.CodeBadRequest for a
// cursor, an order or a limit that is none; a cursor goes with the order and search it came from.
func (s *Store) Conversations(ctx context.Context, workspace, owner string, q core.ConversationQuery) (core.ConversationPage, error) {
	l, err := newListing(workspace, owner, q)
	if err != nil {
		return core.ConversationPage{}, err
	}
	l.inAll = s.dialect.inAll
	var page core.ConversationPage
	err = s.look(ctx, "listing conversations", func(tx *sql.Tx) error {
		page, err = l.page(ctx, tx)
		return err
	})
	return page, err
}

// listing is one reading of one page.
type listing struct {
	workspace, owner string
	shelf            int64
	limit            int
	column           string // what the page is ordered by
	terms            []term
	searched         bool
	after            *cursor
	inAll            func(lists []string) string // selects the conversations that are in every list
}

// cursor is the last conversation of the page before.
type cursor struct {
	SortBy core.ConversationSort `json:"s"`
	Search string                `json:"q,omitempty"`
	Total  int                   `json:"n"` // of a search; it is counted once
	At     int64                 `json:"t"`
	Key    int64                 `json:"k"`
}

func newListing(workspace, owner string, q core.ConversationQuery) (*listing, error) {
	l := &listing{workspace: workspace, owner: owner, limit: cmp.Or(q.Limit, defaultLimit)}
	if l.limit < 1 || l.limit > maxLimit {
		return nil, core.Errorf(core.CodeBadRequest, "limit: must be 1 to %d", maxLimit)
	}
	switch q.SortBy {
	case "", core.SortByUpdated:
		q.SortBy, l.column = core.SortByUpdated, "updated_at"
	case core.SortByCreated:
		l.column = "created_at"
	default:
		return nil, core.Errorf(core.CodeBadRequest, "sortBy: must be %s or %s", core.SortByUpdated, core.SortByCreated)
	}
	l.after = &cursor{SortBy: q.SortBy, Search: q.Search}
	if q.Cursor != "" {
		if err := l.after.read(q.Cursor); err != nil {
			return nil, err
		}
	}
	l.terms, l.searched = terms(q.Search), strings.TrimSpace(q.Search) != ""
	return l, nil
}

func (c *cursor) read(text string) error {
	var from cursor
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(raw, &from)
	}
	if err != nil || from.At == 0 || from.SortBy != c.SortBy || from.Search != c.Search {
		return core.Errorf(core.CodeBadRequest, "cursor: is not one that this list gave for the same sortBy and search; leave it out to begin anew")
	}
	*c = from
	return nil
}

func (c cursor) at(last core.Conversation) (string, error) {
	c.At = millis(last.UpdatedAt)
	if c.SortBy == core.SortByCreated {
		c.At = millis(last.CreatedAt)
	}
	var err error
	if c.Key, err = conversationKey(last.ID); err != nil {
		return "", err
	}
	raw, err := json.Marshal(c)
	return base64.RawURLEncoding.EncodeToString(raw), err
}

func (l *listing) page(ctx context.Context, tx *sql.Tx) (core.ConversationPage, error) {
	page := core.ConversationPage{Conversations: []core.Conversation{}}
	err := tx.QueryRowContext(ctx, `SELECT id, conversations FROM shelves WHERE workspace = $1 AND owner = $2`, l.workspace, l.owner).
		Scan(&l.shelf, &page.TotalCount)
	if errors.Is(err, sql.ErrNoRows) || err == nil && l.searched && len(l.terms) == 0 { // nothing has been said, or nothing is in the search
		page.TotalCount = 0
		return page, nil
	}
	if err != nil {
		return page, err
	}
	from := source{from: `conversations c WHERE c.shelf = $1`, args: []any{l.shelf}}
	if l.searched {
		if from, page.TotalCount, err = l.search(ctx, tx); err != nil || page.TotalCount == 0 {
			return page, err
		}
	}
	if page.Conversations, err = l.read(ctx, tx, from); err != nil || len(page.Conversations) <= l.limit {
		return page, err
	}
	page.Conversations = page.Conversations[:l.limit]
	l.after.Total = page.TotalCount
	page.NextCursor, err = l.after.at(page.Conversations[l.limit-1])
	return page, err
}

// source is where the conversations c of a page come from, in SQL.
type source struct {
	with, from string
	args       []any
}

// search chooses how to search, and counts what is found. Findings are gathered and sorted when they
// are few; among many the page is soon full when it is looked for from the newest conversation
// downwards. A rare word's conversations are asked for the other words; where all words are frequent,
// their lists are gone through.
func (l *listing) search(ctx context.Context, tx *sql.Tx) (from source, total int, err error) {
	rare, err := l.rarestFirst(ctx, tx)
	if err != nil {
		return from, 0, err
	}
	from.args = []any{l.shelf}
	var lists, ofListed, ofEach []string
	for i, t := range l.terms {
		from.args = append(from.args, t.low, t.high)
		list, meets := t.sql(2*i + 2)
		lists, ofListed, ofEach = append(lists, list), append(ofListed, meets("w.conversation")), append(ofEach, meets("c.id"))
	}
	matches := l.inAll(lists)
	if rare <= manyFound {
		matches = strings.Join(append(lists[:1], ofListed[1:]...), ` AND `)
	}
	if total = l.after.Total; l.after.At == 0 { // the first page
		if err := tx.QueryRowContext(ctx, `SELECT COUNT(*) FROM (`+matches+`) found`, from.args...).Scan(&total); err != nil {
			return from, 0, err
		}
	}
	if total <= 2*manyFound {
		from.with = `WITH found AS MATERIALIZED (` + matches + `) `
		from.from = `found f JOIN conversations c ON c.id = f.conversation WHERE c.shelf = $1`
	} else {
		from.from = `conversations c WHERE c.shelf = $1 AND ` + strings.Join(ofEach, ` AND `)
	}
	return from, total, nil
}

// sql is a term with its bounds as arguments n and n+1: the list of conversations that it is in, and
// the condition that it is in one.
func (t term) sql(n int) (list string, meets func(conversation string) string) {
	list, fits := `SELECT DISTINCT`, fmt.Sprintf(`word >= $%d AND word < $%d`, n, n+1)
	if t.exact() {
		list, fits = `SELECT`, fmt.Sprintf(`word = $%d AND word < $%d`, n, n+1) // for planners that do not see it
	}
	return list + ` w.conversation FROM words w WHERE w.shelf = $1 AND w.` + strings.ReplaceAll(fits, ` AND `, ` AND w.`),
		func(conversation string) string {
			return `EXISTS (SELECT 1 FROM words x WHERE x.conversation = ` + conversation + ` AND x.` + strings.ReplaceAll(fits, ` AND `, ` AND x.`) + `)`
		}
}

// rarestFirst puts the term that the fewest words of the shelf fit to the front, and returns how
// many do, counted up to just above manyFound. A beginning that only one word has becomes that word.
func (l *listing) rarestFirst(ctx context.Context, tx *sql.Tx) (rare int, err error) {
	const among = ` FROM words WHERE shelf = $1 AND word >= $2 AND word < $3`
	rare = manyFound + 1
	for i, t := range l.terms {
		if !t.exact() {
			var first, last []byte
			err := tx.QueryRowContext(ctx, `SELECT (SELECT word`+among+` ORDER BY word LIMIT 1), (SELECT word`+among+` ORDER BY word DESC LIMIT 1)`,
				l.shelf, t.low, t.high).Scan(&first, &last)
			if err != nil {
				return 0, err
			}
			if first != nil && bytes.Equal(first, last) {
				t = exactly(string(first))
				l.terms[i] = t
			}
		}
		var n int
		if err := tx.QueryRowContext(ctx, `SELECT COUNT(*) FROM (SELECT 1`+among+` LIMIT $4) few`, l.shelf, t.low, t.high, rare).Scan(&n); err != nil {
			return 0, err
		}
		if n < rare {
			rare = n
			l.terms[0], l.terms[i] = l.terms[i], l.terms[0]
		}
	}
	return rare, nil
}

// read returns one conversation more than fits on the page, when there is one.
func (l *listing) read(ctx context.Context, tx *sql.Tx, f source) ([]core.Conversation, error) {
	args := slices.Clone(f.args)
	query := f.with + `SELECT ` + conversationColumns + ` FROM ` + f.from
	if l.after.At != 0 {
		query += fmt.Sprintf(` AND (c.%s, c.id) < ($%d, $%d)`, l.column, len(args)+1, len(args)+2)
		args = append(args, l.after.At, l.after.Key)
	}
	query += fmt.Sprintf(` ORDER BY c.%s DESC, c.id DESC LIMIT $%d`, l.column, len(args)+1)
	rows, err := tx.QueryContext(ctx, query, append(args, l.limit+1)...)
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
