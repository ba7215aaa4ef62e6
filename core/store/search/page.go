package search

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"
)

// Limits contains the numbers of conversations at which a search changes its method. They do not affect the result.
type Limits struct {
	ByNumber int // up to this many matches are read by number; if there are more, the search follows the page's order
	Scan     int // conversations to go through, in order, in one query
	Later    int // maximum number of conversations with other numbers, changed later, for a search by number (by_number.go)
}

// DefaultLimits returns the limits that were measured with BenchmarkConversations in core/store.
func DefaultLimits() Limits { return Limits{ByNumber: 4_000, Scan: 20_000, Later: 2_000} }

// Position is a place in the order of a list: the place of the last conversation of a page. The zero value is the
// start of the list.
type Position struct {
	At  int64 // the time that the list is ordered by
	Key int64 // the conversation's id
}

// Page describes the page of a list to find.
type Page struct {
	Collection int64
	Terms      []Term
	Column     string // the column of conversations that the list is ordered by, newest first
	After      Position
	Limit      int
	Size       int // number of conversations in the collection
	// Numbered is the part after the columns in a SELECT of the conversations c in the collection $1 with their
	// numbers in the JSON array $2.
	Numbered string
}

// All is the part after the columns in a SELECT of all conversations c in the collection $1.
const All = ` FROM conversations c WHERE c.collection = $1`

// Query returns the next conversations c after a position, in order. what contains the columns, followed by All or
// Numbered.
func (p *Page) Query(ctx context.Context, tx *sql.Tx, what string, args []any, after Position, limit int) (*sql.Rows, error) {
	query := `SELECT ` + what
	if after.At != 0 {
		query += fmt.Sprintf(` AND (c.%s, c.id) < ($%d, $%d)`, p.Column, len(args)+1, len(args)+2)
		args = append(args, after.At, after.Key)
	}
	query += fmt.Sprintf(` ORDER BY c.%s DESC, c.id DESC LIMIT $%d`, p.Column, len(args)+1)
	return tx.QueryContext(ctx, query, append(args, limit)...)
}

// Find returns the numbers of conversations that match every term, and the total number of matches. The numbers include
// at least all conversations of the page and the one that follows the page, if there is one. If there are few matches,
// Find returns all of them. If there are many, it goes through the conversations in the page's order, where it soon
// finds enough of them.
func (x *Index) Find(ctx context.Context, tx *sql.Tx, p *Page) (numbers []uint32, total int, err error) {
	var found *roaring.Bitmap
	single := 0
	for _, t := range p.Terms {
		in, n, err := t.numbers(ctx, tx, p.Collection)
		if err != nil {
			return nil, 0, err
		}
		if single += n; found != nil {
			in.And(found)
		}
		found = in
	}
	if single >= compactFrom {
		x.requestCompaction(p.Collection)
	}
	if total = int(found.GetCardinality()); total <= x.limits.ByNumber {
		return found.ToArray(), total, nil
	}
	numbers, err = p.scan(ctx, tx, x.limits, found, 2*(p.Limit+1)*max(p.Size/total, 1))
	return numbers, total, err
}

// scan returns numbers that include those of a page's conversations and of the one that follows the page, if there is
// one. It looks for them in the first conversations of the order, then by number (by_number.go), and then in all
// conversations.
func (p *Page) scan(ctx context.Context, tx *sql.Tx, limits Limits, found *roaring.Bitmap, many int) (numbers []uint32, err error) {
	at := p.After
	for round, last := 0, false; !last && len(numbers) <= p.Limit; round, many = round+1, 4*many {
		many = min(many, limits.Scan)
		if round == 1 {
			if old, ok, err := p.findByNumber(ctx, tx, limits.Later, found); err != nil || ok {
				return old, err
			}
		}
		rows, err := p.Query(ctx, tx, `c.number, c.`+p.Column+`, c.id`+All, []any{p.Collection}, at, many)
		if err != nil {
			return nil, err
		}
		seen := 0
		err = scanPositions(rows, &at, func(number uint32) {
			if seen++; len(numbers) <= p.Limit && found.Contains(number) {
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

// scanPositions reads rows of a number and a position. It leaves the last position in at.
func scanPositions(rows *sql.Rows, at *Position, each func(number uint32)) error {
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var number uint32
		if err := rows.Scan(&number, &at.At, &at.Key); err != nil {
			return err
		}
		each(number)
	}
	return rows.Err()
}
