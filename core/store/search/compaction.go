package search

import (
	"context"
	"database/sql"
	"errors"
	"sync"
)

const (
	// compactFrom is how many single rows a search may read for its words before it requests compaction.
	compactFrom  = 1_000
	compactRows  = 4_000 // rows compacted at a time; other writes to the file or the collection wait
	maxRequested = 64    // collections waiting for compaction; for any others, a later search requests it again
)

// Start compacts collections in the background when searches request it, until stop is called.
func (x *Index) Start() (stop func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case collection := <-x.requested:
				x.compactAll(ctx, collection)
			}
		}
	})
	return func() error {
		cancel()
		wg.Wait()
		return nil
	}
}

// requestCompaction requests the compaction of a collection, without blocking.
func (x *Index) requestCompaction(collection int64) {
	select {
	case x.requested <- collection:
	default:
	}
}

func (x *Index) compactAll(ctx context.Context, collection int64) {
	for more := true; more && ctx.Err() == nil; {
		var err error
		if more, err = x.Compact(ctx, collection); err != nil && ctx.Err() == nil {
			x.log.Warn("search index not compacted; searches remain correct but slower", "error", err)
			return
		}
	}
}

// Compact compacts the first words of a collection that are not yet compacted, and reports whether there
// are more.
func (x *Index) Compact(ctx context.Context, collection int64) (more bool, err error) {
	err = x.db.Update(ctx, "compacting the search index", func(ctx context.Context, tx *sql.Tx) error {
		if err := lockCollection(ctx, tx, collection); err != nil {
			return err
		}
		which, args := ` WHERE collection = $1`, []any{collection}
		var word []byte
		var number int64
		err := tx.QueryRowContext(ctx, `SELECT word, number FROM words WHERE collection = $1 ORDER BY word, number LIMIT 1 OFFSET $2`, collection, compactRows).
			Scan(&word, &number)
		switch more = err == nil; {
		case more:
			which, args = which+` AND (word, number) < ($2, $3)`, append(args, word, number)
		case !errors.Is(err, sql.ErrNoRows):
			return err
		}
		// Rows that are added in the meantime are not returned, and are kept.
		rows, err := tx.QueryContext(ctx, `DELETE FROM words`+which+` RETURNING word, number`, args...)
		if err != nil {
			return err
		}
		removed, err := scanPostings(rows)
		if err != nil {
			return err
		}
		return x.addSets(ctx, tx, collection, removed)
	})
	return more, err
}

func scanPostings(rows *sql.Rows) (postings, error) {
	defer func() { _ = rows.Close() }()
	all := postings{}
	for rows.Next() {
		var word []byte
		var number int64
		if err := rows.Scan(&word, &number); err != nil {
			return nil, err
		}
		all.add(string(word), number)
	}
	return all, rows.Err()
}

// lockCollection locks the stored sets of a collection against changes by other transactions. A transaction that
// also locks a conversation must lock the collection first.
func lockCollection(ctx context.Context, tx *sql.Tx, collection int64) error {
	_, err := tx.ExecContext(ctx, `UPDATE collections SET last_number = last_number WHERE id = $1`, collection)
	return err
}
