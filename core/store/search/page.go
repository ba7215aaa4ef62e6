package search

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"
)

// Limits are the numbers of conversations at which a search takes another way. The page is the same.
type Limits struct {
	ByNumber int // conversations that are read by their numbers; more are looked for in the page's order
	Scan     int // conversations of the order that are looked at in one query
	Later    int // conversations with other numbers that were changed later (by_number.go)
}

// DefaultLimits returns the limits that BenchmarkConversations in core/store was measured with.
func DefaultLimits() Limits { return Limits{ByNumber: 4_000, Scan: 20_000, Later: 2_000} }

// Position is a place in the order of a list: the last conversation of a page. The zero value is the
// beginning.
type Position struct {
	At  int64 // the time that the list is ordered by
	Key int64 // the conversation's id
}

// Page is what a page of a list is to contain.
type Page struct {
	Collection int64
	Terms      []Term
	Column     string // of conversations that the list is ordered by, newest first
	After      Position
	Limit      int
	Size       int // conversations of the collection
	// Numbered begins, after the columns, a SELECT of the conversations c of the collection $1 whose
	// numbers the JSON array $2 holds.
	Numbered string
}

// All begins, after the columns, a SELECT of all conversations c of the collection $1.
const All = ` FROM conversations c WHERE c.collection = $1`

// Query returns the next conversations c after a position, in order. what is the columns and where they
// come from.
func (p *Page) Query(ctx context.Context, tx *sql.Tx, what string, args []any, after Position, limit int) (*sql.Rows, error) {
	query := `SELECT ` + what
	if after.At != 0 {
		query += fmt.Sprintf(` AND (c.%s, c.id) < ($%d, $%d)`, p.Column, len(args)+1, len(args)+2)
		args = append(args, after.At, after.Key)
	}
	query += fmt.Sprintf(` ORDER BY c.%s DESC, c.id DESC LIMIT $%d`, p.Column, len(args)+1)
	return tx.QueryContext(ctx, query, append(args, limit)...)
}

// Find returns the numbers of conversations that match every term, among them all of the page and one
// more, and how many match in all. A few matches are returned as they are. Many are met soon when the
// conversations are gone through in the page's order.
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

// scan returns the numbers of a page's conversations, and of one more, among others. It looks for them in
// the first conversations of the order, then by their numbers (by_number.go), and then in all.
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

// scanPositions reads rows of a number and a position, and leaves the last position in at.
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
