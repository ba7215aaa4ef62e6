package search

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/ropewalk/ropewalk/core/store/database"
)

// This file finds a page of search results if there are many matches and all of them are old, because going through
// everything that is newer would take too long. Conversations are numbered in the order of their creation, so the
// page probably consists of the matches with the highest numbers. A conversation with a lower number belongs on the
// page only if it was changed later than the last of these. There are few such conversations, and the database finds
// them using only the index for the order.
//
// BenchmarkConversations in core/store covers this case.

const candidates = 10 // how many of the conversations with the highest numbers to read for each place on the page

// findByNumber returns the same as scan. It returns false if the numbers say nothing about the order, because
// many conversations were imported or changed much later.
func (p *Page) findByNumber(ctx context.Context, tx *sql.Tx, maxLater int, found *roaring.Bitmap) (numbers []uint32, ok bool, err error) {
	highest, err := p.highest(ctx, tx, found)
	if err != nil || len(highest) <= p.Limit {
		return nil, false, err
	}
	var last Position
	what := `c.number, c.` + p.Column + `, c.id`
	rows, err := p.Query(ctx, tx, what+p.Numbered, []any{p.Collection, database.JSONList(highest)}, p.After, p.Limit+1)
	if err == nil {
		err = scanPositions(rows, &last, func(number uint32) { numbers = append(numbers, number) })
	}
	if err != nil || len(numbers) <= p.Limit {
		return nil, false, err
	}
	// The plus prevents the database from using the index of the numbers.
	later := fmt.Sprintf(All+` AND (c.%s, c.id) > ($2, $3) AND (+c.number < $4 OR +c.number > $5) AND +c.number <= $6`, p.Column)
	args := []any{p.Collection, last.At, last.Key, highest[len(highest)-1], highest[0], found.Maximum()}
	if rows, err = p.Query(ctx, tx, what+later, args, p.After, maxLater); err != nil {
		return nil, false, err
	}
	seen := 0
	err = scanPositions(rows, &last, func(number uint32) {
		if seen++; found.Contains(number) {
			numbers = append(numbers, number)
		}
	})
	return numbers, seen < maxLater, err
}

// highest returns the highest numbers in found, in descending order, starting with that of the previous page's last
// conversation.
func (p *Page) highest(ctx context.Context, tx *sql.Tx, found *roaring.Bitmap) ([]uint32, error) {
	from := found.Maximum()
	if p.After.At != 0 {
		err := tx.QueryRowContext(ctx, `SELECT number FROM conversations WHERE id = $1 AND collection = $2`, p.After.Key, p.Collection).Scan(&from)
		if err != nil && !errors.Is(err, sql.ErrNoRows) { // the conversation may have been deleted
			return nil, err
		}
	}
	var numbers []uint32
	for rank := found.Rank(from); rank > 0 && len(numbers) < candidates*(p.Limit+1); rank-- {
		number, err := found.Select(uint32(rank - 1))
		if err != nil {
			return nil, err
		}
		numbers = append(numbers, number)
	}
	return numbers, nil
}
