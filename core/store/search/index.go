package search

import (
	"context"
	"database/sql"
	"slices"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core/store/database"
)

// Index is the search index of all conversations. It is safe for concurrent use.
type Index struct {
	db        *database.Database
	log       hclog.Logger
	limits    Limits
	requested chan int64 // collections waiting for compaction

	// selectSets selects the words and numbers of stored sets, for the collection $1, the page $2 and the words in the
	// JSON array $3. The planner must use individual lookups regardless of its statistics, even if one collection is
	// much larger than the others.
	selectSets string
	// selectWords selects a row of $1, the word, $3 and $4 for each word of the JSON array $2.
	selectWords string
}

// New returns the index in a database. Start starts its compaction.
func New(db *database.Database, log hclog.Logger, limits Limits) *Index {
	x := &Index{db: db, log: log, limits: limits, requested: make(chan int64, maxRequested)}
	if db.Kind() == database.PostgreSQL {
		x.selectSets = `SELECT p.word, p.numbers FROM json_array_elements_text(CAST($3 AS JSON)) n CROSS JOIN LATERAL
			(SELECT word, numbers FROM word_sets WHERE collection = $1 AND page = $2 AND word = convert_to(n.value, 'UTF8') LIMIT 1) p`
		x.selectWords = `SELECT CAST($1 AS BIGINT), convert_to(value, 'UTF8'), CAST($3 AS BIGINT), CAST($4 AS BIGINT)
			FROM json_array_elements_text(CAST($2 AS JSON))`
		return x
	}
	// CROSS JOIN keeps the order of the tables.
	x.selectSets = `SELECT p.word, p.numbers FROM json_each($3) n CROSS JOIN word_sets p
		WHERE p.collection = $1 AND p.page = $2 AND p.word = CAST(n.value AS BLOB)`
	x.selectWords = `SELECT $1, CAST(value AS BLOB), $3, $4 FROM json_each($2) WHERE TRUE` // without WHERE it would be parsed as a join
	return x
}

// Document identifies a conversation in the index.
type Document struct {
	Collection int64
	Key        int64 // its id
	Number     int64 // the number in its collection
}

// Add adds the words of texts to the words of a conversation.
func (x *Index) Add(ctx context.Context, tx *sql.Tx, d Document, texts ...string) error {
	words := distinct(texts...)
	if len(words) == 0 {
		return nil
	}
	_, err := tx.ExecContext(ctx, `INSERT INTO words (conversation, word, collection, number) `+x.selectWords+` ON CONFLICT (conversation, word) DO NOTHING`,
		d.Key, database.JSONList(words), d.Collection, d.Number)
	return err
}

// Replace removes the words of an old text, unless the new text or one of the others contains them too, and
// adds the words of the new text. others returns the other texts of the conversation; it is called only if
// needed.
func (x *Index) Replace(ctx context.Context, tx *sql.Tx, d Document, old, text string, others func() ([]string, error)) error {
	gone := distinct(old)
	if len(gone) == 0 {
		return x.Add(ctx, tx, d, text)
	}
	if err := lockCollection(ctx, tx, d.Collection); err != nil {
		return err
	}
	stays, err := others()
	if err != nil {
		return err
	}
	stays = distinct(append(stays, text)...)
	gone = slices.DeleteFunc(gone, func(word string) bool { _, found := slices.BinarySearch(stays, word); return found })
	for _, word := range gone {
		if _, err := tx.ExecContext(ctx, `DELETE FROM words WHERE conversation = $1 AND word = $2`, d.Key, []byte(word)); err != nil {
			return err
		}
	}
	if err := x.removeFromSets(ctx, tx, d.Collection, d.Number, gone); err != nil {
		return err
	}
	return x.Add(ctx, tx, d, text)
}

// RemoveFromSets removes a conversation with these texts from the stored sets of its collection, which the
// transaction must have locked. Its single rows are deleted with the conversation itself.
func (x *Index) RemoveFromSets(ctx context.Context, tx *sql.Tx, d Document, texts ...string) error {
	return x.removeFromSets(ctx, tx, d.Collection, d.Number, distinct(texts...))
}

// Bulk collects the words of many conversations of one collection that are imported together. The zero
// value is empty.
type Bulk struct{ words postings }

// Add adds the words of texts to the words of the conversation with that number.
func (b *Bulk) Add(number int64, texts ...string) {
	if b.words == nil {
		b.words = postings{}
	}
	for _, word := range distinct(texts...) {
		b.words.add(word, number)
	}
}

// AddBulk adds the words of a Bulk in compacted form. The transaction must have locked the collection.
func (x *Index) AddBulk(ctx context.Context, tx *sql.Tx, collection int64, b Bulk) error {
	return x.addSets(ctx, tx, collection, b.words)
}
