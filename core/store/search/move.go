package search

import (
	"context"
	"database/sql"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/ropewalk/ropewalk/core/store/database"
)

// Move moves the index entries of one collection to another. It returns how much the numbers of the moved conversations
// increase, so that they follow last, the highest number used in the other collection. The caller must change the numbers
// of the conversations themselves.
func (x *Index) Move(ctx context.Context, tx *sql.Tx, from, to, last int64) (shift int64, err error) {
	for _, collection := range slices.Sorted(slices.Values([]int64{from, to})) {
		if err := lockCollection(ctx, tx, collection); err != nil {
			return 0, err
		}
	}
	shift = last + 1
	if _, err := tx.ExecContext(ctx, `UPDATE words SET collection = $2, number = number + $3 WHERE collection = $1`, from, to, shift); err != nil {
		return 0, err
	}
	for page := int64(0); err == nil && page >= 0; {
		page, err = x.movePage(ctx, tx, from, to, page, shift)
	}
	return shift, err
}

// movePage moves the stored sets of the first page that has any, starting at the given page. It returns the next page, or
// -1 if there is none.
func (x *Index) movePage(ctx context.Context, tx *sql.Tx, from, to, page, shift int64) (next int64, err error) {
	var first sql.NullInt64
	if err := tx.QueryRowContext(ctx, `SELECT MIN(page) FROM word_sets WHERE collection = $1 AND page >= $2`, from, page).Scan(&first); err != nil || !first.Valid {
		return -1, err
	}
	moved := postings{}
	_, err = database.Collect(ctx, tx, `DELETE FROM word_sets WHERE collection = $1 AND page = $2 RETURNING word, numbers`, []any{from, first.Int64},
		func(row database.Row) (none struct{}, err error) {
			var word, raw []byte
			if err := row.Scan(&word, &raw); err != nil {
				return none, err
			}
			stored := roaring.New()
			if err := stored.UnmarshalBinary(raw); err != nil {
				return none, err
			}
			moved[string(word)] = roaring.AddOffset64(stored, shift)
			return none, nil
		})
	if err != nil {
		return 0, err
	}
	return first.Int64 + 1, x.addSets(ctx, tx, to, moved)
}
