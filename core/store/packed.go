package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
)

// This file is how words are kept that were written a while ago: not as a row for each conversation
// that has the word, but as rows of up to 65,536 conversations each, as a compressed set of their
// numbers. Words are written as single rows first (words.go), which is cheap, and packed later
// (packer.go), which makes searches for words of a hundred thousand conversations cheap. What a
// search finds is in either of the two; being in both does no harm.

// postings are the numbers of the conversations that have a word, by word.
type postings map[string]*roaring.Bitmap

func (p postings) add(word string, number int64) {
	if p[word] == nil {
		p[word] = roaring.New()
	}
	p[word].Add(uint32(number))
}

// slot is where a set is kept: of one word, the numbers of one page.
type slot struct {
	word string
	page uint32
}

func pageOf(number int64) uint32 { return uint32(number) >> 16 }

// pages cuts the sets to what is kept together.
func (p postings) pages() map[slot]*roaring.Bitmap {
	cut := make(map[slot]*roaring.Bitmap)
	for word, numbers := range p {
		for rest := numbers; !rest.IsEmpty(); {
			page := rest.Minimum() >> 16
			one := rest.Clone()
			one.RemoveRange(uint64(page+1)<<16, 1<<32)
			cut[slot{word, page}] = one
			rest = rest.Clone()
			rest.RemoveRange(0, uint64(page+1)<<16)
		}
	}
	return cut
}

// pack adds postings to the packed words of a shelf, which the transaction must have locked.
func (d dialect) pack(ctx context.Context, tx *sql.Tx, shelf int64, add postings) error {
	sets := add.pages()
	pages := make(map[uint32][]string)
	for at := range sets {
		pages[at.page] = append(pages[at.page], at.word)
	}
	for page, words := range pages {
		slices.Sort(words) // rows that lie together are written together
		err := d.packedSets(ctx, tx, shelf, page, words, func(word string, kept *roaring.Bitmap) {
			sets[slot{word, page}].Or(kept)
		})
		if err != nil {
			return err
		}
		if err := keepSets(ctx, tx, shelf, page, words, func(word string) *roaring.Bitmap { return sets[slot{word, page}] }); err != nil {
			return err
		}
	}
	return nil
}

// unpack takes a conversation out of the packed sets of words of a shelf, which the transaction must
// have locked: nothing is left of words that nobody else said.
func (d dialect) unpack(ctx context.Context, tx *sql.Tx, shelf, number int64, words []string) error {
	page, less := pageOf(number), make(map[string]*roaring.Bitmap)
	err := d.packedSets(ctx, tx, shelf, page, words, func(word string, kept *roaring.Bitmap) {
		if kept.CheckedRemove(uint32(number)) {
			less[word] = kept
		}
	})
	if err != nil {
		return err
	}
	var left []string
	for word, numbers := range less {
		if !numbers.IsEmpty() {
			left = append(left, word)
		} else if _, err := tx.ExecContext(ctx, `DELETE FROM packed_words WHERE shelf = $1 AND word = $2 AND page = $3`, shelf, []byte(word), page); err != nil {
			return err
		}
	}
	return keepSets(ctx, tx, shelf, page, left, func(word string) *roaring.Bitmap { return less[word] })
}

// packedSets reads the sets of some words on one page. Words without one are left out.
func (d dialect) packedSets(ctx context.Context, tx *sql.Tx, shelf int64, page uint32, words []string, each func(word string, numbers *roaring.Bitmap)) error {
	rows, err := tx.QueryContext(ctx, d.sets, shelf, page, list(words))
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
			return fmt.Errorf("the packed words are damaged: %w", err)
		}
		each(string(word), numbers)
	}
	return rows.Err()
}

func keepSets(ctx context.Context, tx *sql.Tx, shelf int64, page uint32, words []string, of func(word string) *roaring.Bitmap) error {
	rows := inserting{
		into: `INSERT INTO packed_words (shelf, word, page, numbers)`,
		then: `ON CONFLICT (shelf, word, page) DO UPDATE SET numbers = excluded.numbers`,
	}
	for _, word := range words {
		numbers := of(word)
		numbers.RunOptimize()
		raw, err := numbers.ToBytes()
		if err != nil {
			return err
		}
		rows.add(shelf, []byte(word), page, raw)
	}
	return rows.run(ctx, tx)
}

// numbers are the conversations of a shelf that a term is in. single is how many of its rows were of
// one conversation each.
func (t term) numbers(ctx context.Context, q querier, shelf int64) (found *roaring.Bitmap, single int, err error) {
	which := ` WHERE shelf = $1 AND word >= $2 AND word < $3`
	if t.exact() {
		which = ` WHERE shelf = $1 AND word = $2 AND word < $3` // for planners that do not see it
	}
	rows, err := q.QueryContext(ctx, `SELECT word, numbers FROM packed_words`+which, shelf, t.low, t.high)
	if err != nil {
		return nil, 0, err
	}
	var sets []*roaring.Bitmap
	if err := scanSets(rows, func(_ string, numbers *roaring.Bitmap) { sets = append(sets, numbers) }); err != nil {
		return nil, 0, err
	}
	found = roaring.FastOr(sets...)
	if rows, err = q.QueryContext(ctx, `SELECT number FROM words`+which, shelf, t.low, t.high); err != nil {
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
