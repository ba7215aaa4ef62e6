package search

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/ropewalk/ropewalk/core/store/database"
)

// This file handles compacted words. A compacted word does not have a row for each conversation that contains it,
// but a row for each page of 65,536 conversations, with a compressed set of their numbers. Words are first written
// as single rows, which is cheap, and compacted later, which makes searches cheap for words that occur in a
// hundred thousand conversations. A search reads both forms; a word may be in both.

// postings maps each word to the numbers of the conversations that contain it.
type postings map[string]*roaring.Bitmap

func (p postings) add(word string, number int64) {
	if p[word] == nil {
		p[word] = roaring.New()
	}
	p[word].Add(uint32(number))
}

// setKey identifies a stored set: the conversations of one page that contain a word.
type setKey struct {
	word string
	page uint32
}

func pageOf(number int64) uint32 { return uint32(number) >> 16 }

// pages splits the sets into stored sets, one for each page.
func (p postings) pages() map[setKey]*roaring.Bitmap {
	cut := make(map[setKey]*roaring.Bitmap)
	for word, numbers := range p {
		for rest := numbers; !rest.IsEmpty(); {
			page := rest.Minimum() >> 16
			one := rest.Clone()
			one.RemoveRange(uint64(page+1)<<16, 1<<32)
			cut[setKey{word, page}] = one
			rest = rest.Clone()
			rest.RemoveRange(0, uint64(page+1)<<16)
		}
	}
	return cut
}

// addSets adds postings to the stored sets of a collection, which the transaction must have locked.
func (x *Index) addSets(ctx context.Context, tx *sql.Tx, collection int64, add postings) error {
	sets := add.pages()
	pages := make(map[uint32][]string)
	for at := range sets {
		pages[at.page] = append(pages[at.page], at.word)
	}
	for page, words := range pages {
		slices.Sort(words) // so that neighboring rows are written together
		err := x.readSets(ctx, tx, collection, page, words, func(word string, stored *roaring.Bitmap) {
			sets[setKey{word, page}].Or(stored)
		})
		if err != nil {
			return err
		}
		if err := writeSets(ctx, tx, collection, page, words, func(word string) *roaring.Bitmap { return sets[setKey{word, page}] }); err != nil {
			return err
		}
	}
	return nil
}

// removeFromSets removes a conversation from the stored sets of some words of a collection, which the
// transaction must have locked. A set that becomes empty is deleted.
func (x *Index) removeFromSets(ctx context.Context, tx *sql.Tx, collection, number int64, words []string) error {
	page, less := pageOf(number), make(map[string]*roaring.Bitmap)
	err := x.readSets(ctx, tx, collection, page, words, func(word string, stored *roaring.Bitmap) {
		if stored.CheckedRemove(uint32(number)) {
			less[word] = stored
		}
	})
	if err != nil {
		return err
	}
	var left []string
	for word, numbers := range less {
		if !numbers.IsEmpty() {
			left = append(left, word)
		} else if _, err := tx.ExecContext(ctx, `DELETE FROM word_sets WHERE collection = $1 AND word = $2 AND page = $3`, collection, []byte(word), page); err != nil {
			return err
		}
	}
	return writeSets(ctx, tx, collection, page, left, func(word string) *roaring.Bitmap { return less[word] })
}

// readSets reads the stored sets of some words on one page. Words without a set are skipped.
func (x *Index) readSets(ctx context.Context, tx *sql.Tx, collection int64, page uint32, words []string, each func(word string, numbers *roaring.Bitmap)) error {
	rows, err := tx.QueryContext(ctx, x.selectSets, collection, page, database.JSONList(words))
	if err != nil {
		return err
	}
	return scanSets(rows, each)
}

func scanSets(rows *sql.Rows, each func(word string, numbers *roaring.Bitmap)) error {
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var word, raw []byte
		if err := rows.Scan(&word, &raw); err != nil {
			return err
		}
		numbers := roaring.New()
		if err := numbers.UnmarshalBinary(raw); err != nil {
			return fmt.Errorf("the search index is damaged: %w", err)
		}
		each(string(word), numbers)
	}
	return rows.Err()
}

func writeSets(ctx context.Context, tx *sql.Tx, collection int64, page uint32, words []string, of func(word string) *roaring.Bitmap) error {
	rows := database.Insert{
		Into: `INSERT INTO word_sets (collection, word, page, numbers)`,
		Then: `ON CONFLICT (collection, word, page) DO UPDATE SET numbers = excluded.numbers`,
	}
	for _, word := range words {
		numbers := of(word)
		numbers.RunOptimize()
		raw, err := numbers.ToBytes()
		if err != nil {
			return err
		}
		rows.Add(collection, []byte(word), page, raw)
	}
	return rows.Exec(ctx, tx)
}

// numbers returns the numbers of the conversations in a collection that match a term. single is how many rows that are
// not compacted were read for it.
func (t Term) numbers(ctx context.Context, q database.Querier, collection int64) (found *roaring.Bitmap, single int, err error) {
	which := ` WHERE collection = $1 AND word >= $2 AND word < $3`
	if t.exact() {
		which = ` WHERE collection = $1 AND word = $2 AND word < $3` // equality stated for planners that do not derive it from the range
	}
	rows, err := q.QueryContext(ctx, `SELECT word, numbers FROM word_sets`+which, collection, t.low, t.high)
	if err != nil {
		return nil, 0, err
	}
	var sets []*roaring.Bitmap
	if err := scanSets(rows, func(_ string, numbers *roaring.Bitmap) { sets = append(sets, numbers) }); err != nil {
		return nil, 0, err
	}
	found = roaring.FastOr(sets...)
	if rows, err = q.QueryContext(ctx, `SELECT number FROM words`+which, collection, t.low, t.high); err != nil {
		return nil, 0, err
	}
	defer func() { _ = rows.Close() }()
	for ; rows.Next(); single++ {
		var number uint32
		if err := rows.Scan(&number); err != nil {
			return nil, 0, err
		}
		found.Add(number)
	}
	return found, single, rows.Err()
}
