package store

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/ropewalk/ropewalk/core"
)

const (
	defaultLimit = 20
	maxLimit     = 100

	manyFound = 4_000  // conversations that are read by their numbers; more are looked for among all
	mostAhead = 20_000 // conversations that are looked at in one go
)

// Conversations returns a page of a person's conversations in a workspace. core.CodeBadRequest for a
// cursor, an order or a limit that is none; a cursor goes with the order and search it came from.
func (s *Store) Conversations(ctx context.Context, workspace, owner string, q core.ConversationQuery) (core.ConversationPage, error) {
	l, err := newListing(workspace, owner, q)
	if err != nil {
		return core.ConversationPage{}, err
	}
	l.numbered, l.pack = s.dialect.numbered, s.packer.ask
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
	numbered         string            // the dialect's
	pack             func(shelf int64) // asks for a shelf whose words should be packed
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
	from, args := ofShelf, []any{l.shelf}
	if l.searched {
		var found []uint32
		if found, page.TotalCount, err = l.search(ctx, tx, page.TotalCount); err != nil || len(found) == 0 {
			return page, err
		}
		from, args = l.numbered, append(args, list(found))
	}
	if page.Conversations, err = l.read(ctx, tx, from, args); err != nil || len(page.Conversations) <= l.limit {
		return page, err
	}
	page.Conversations = page.Conversations[:l.limit]
	l.after.Total = page.TotalCount
	page.NextCursor, err = l.after.at(page.Conversations[l.limit-1])
	return page, err
}

// ofShelf begins, after the columns, a SELECT of all conversations c of the shelf $1.
const ofShelf = ` FROM conversations c WHERE c.shelf = $1`

// search returns the numbers of conversations that hold all that is searched for, among them all of
// the page, and how many there are in all. Few are returned as they are. Many are met soon when all of
// the shelf are gone through in the page's order.
func (l *listing) search(ctx context.Context, tx *sql.Tx, all int) (numbers []uint32, total int, err error) {
	var found *roaring.Bitmap
	single := 0
	for _, t := range l.terms {
		in, n, err := t.numbers(ctx, tx, l.shelf)
		if err != nil {
			return nil, 0, err
		}
		if single += n; found != nil {
			in.And(found)
		}
		found = in
	}
	if single >= manySingle {
		l.pack(l.shelf)
	}
	many := int(found.GetCardinality())
	if total = many; l.after.At != 0 {
		total = l.after.Total
	}
	if many <= manyFound {
		return found.ToArray(), total, nil
	}
	numbers, err = l.ahead(ctx, tx, found, 2*(l.limit+1)*max(all/many, 1))
	return numbers, total, err
}

// ahead returns the numbers of a page's conversations, and of one more, among others. It looks for
// them in so many that come next, then by their numbers (older.go), and then in all.
func (l *listing) ahead(ctx context.Context, tx *sql.Tx, found *roaring.Bitmap, many int) (numbers []uint32, err error) {
	at := *l.after
	for round, last := 0, false; !last && len(numbers) <= l.limit; round, many = round+1, 4*many {
		many = min(many, mostAhead)
		if round == 1 {
			if old, ok, err := l.older(ctx, tx, found); err != nil || ok {
				return old, err
			}
		}
		rows, err := l.query(ctx, tx, `c.number, c.`+l.column+`, c.id`+ofShelf, []any{l.shelf}, at, many)
		if err != nil {
			return nil, err
		}
		seen := 0
		err = eachNumber(rows, &at, func(number uint32) {
			if seen++; len(numbers) <= l.limit && found.Contains(number) {
				numbers = append(numbers, number)
			}
		})
		if err != nil {
			return nil, err
		}
		last = seen < many
	}
	return numbers, nil
}

// list is numbers or words as the dialect reads them.
func list[T uint32 | string](all []T) string {
	raw, _ := json.Marshal(all) // these always marshal
	return string(raw)
}

// read returns one conversation more than fits on the page, when there is one.
func (l *listing) read(ctx context.Context, tx *sql.Tx, from string, args []any) ([]core.Conversation, error) {
	rows, err := l.query(ctx, tx, conversationColumns+from, args, *l.after, l.limit+1)
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

// query asks for the next conversations c after one, in order. what is the columns and where they
// come from.
func (l *listing) query(ctx context.Context, tx *sql.Tx, what string, args []any, after cursor, limit int) (*sql.Rows, error) {
	query := `SELECT ` + what
	if after.At != 0 {
		query += fmt.Sprintf(` AND (c.%s, c.id) < ($%d, $%d)`, l.column, len(args)+1, len(args)+2)
		args = append(args, after.At, after.Key)
	}
	query += fmt.Sprintf(` ORDER BY c.%s DESC, c.id DESC LIMIT $%d`, l.column, len(args)+1)
	return tx.QueryContext(ctx, query, append(args, limit)...)
}
