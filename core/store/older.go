package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"
)

// This file finds the page of a search whose conversations are many, and all from long ago: to go
// through everything newer would take too long. Conversations have their numbers in the order of
// their making, so those with the highest numbers are likely to be the page. What is missing are
// conversations of other numbers that were changed later than the last of these; the database can
// tell them from the order's index alone, and they are few.

const (
	drawn     = 10    // conversations of the highest numbers for each place of the page
	mostOther = 2_000 // conversations of other numbers that were changed later
)

// older is what ahead returns, or false where the numbers tell nothing of the order: many were
// imported, or changed much later.
func (l *listing) older(ctx context.Context, tx *sql.Tx, found *roaring.Bitmap) (numbers []uint32, ok bool, err error) {
	draw, err := l.draw(ctx, tx, found)
	if err != nil || len(draw) <= l.limit {
		return nil, false, err
	}
	var last cursor
	what := `c.number, c.` + l.column + `, c.id`
	rows, err := l.query(ctx, tx, what+l.numbered, []any{l.shelf, list(draw)}, *l.after, l.limit+1)
	if err == nil {
		err = eachNumber(rows, &last, func(number uint32) { numbers = append(numbers, number) })
	}
	if err != nil || len(numbers) <= l.limit {
		return nil, false, err
	}
	// The plus keeps the database from going by the numbers.
	others := fmt.Sprintf(ofShelf+` AND (c.%s, c.id) > ($2, $3) AND (+c.number < $4 OR +c.number > $5) AND +c.number <= $6`, l.column)
	args := []any{l.shelf, last.At, last.Key, draw[len(draw)-1], draw[0], found.Maximum()}
	if rows, err = l.query(ctx, tx, what+others, args, *l.after, mostOther); err != nil {
		return nil, false, err
	}
	seen := 0
	err = eachNumber(rows, &last, func(number uint32) {
		if seen++; found.Contains(number) {
			numbers = append(numbers, number)
		}
	})
	return numbers, seen < mostOther, err
}

// draw is the highest numbers that are found, downwards, or the highest up to that of the last
// conversation of the page before.
func (l *listing) draw(ctx context.Context, tx *sql.Tx, found *roaring.Bitmap) ([]uint32, error) {
	highest := found.Maximum()
	if l.after.At != 0 {
		err := tx.QueryRowContext(ctx, `SELECT number FROM conversations WHERE id = $1 AND shelf = $2`, l.after.Key, l.shelf).Scan(&highest)
		if err != nil && !errors.Is(err, sql.ErrNoRows) { // it may have been deleted
			return nil, err
		}
	}
	var numbers []uint32
	for rank := found.Rank(highest); rank > 0 && len(numbers) < drawn*(l.limit+1); rank-- {
		number, err := found.Select(uint32(rank - 1))
		if err != nil {
			return nil, err
		}
		numbers = append(numbers, number)
	}
	return numbers, nil
}

// eachNumber reads rows of a number and a place in the order, and leaves the last place in at.
func eachNumber(rows *sql.Rows, at *cursor, each func(number uint32)) error {
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
