package store

import (
	"context"
	"database/sql"
	"errors"
	"sync"

	"github.com/hashicorp/go-hclog"
)

const (
	manySingle = 1_000 // rows of one word from which on a search asks for them to be packed
	packRows   = 4_000 // rows that are packed at a time: others wait for the file, or the shelf, that long
	packWaits  = 64    // shelves that wait to be packed; a search will ask again for any more
)

// packer packs the words of shelves behind everyone's back.
type packer struct {
	asked chan int64
	pack  func(ctx context.Context, shelf int64) (more bool, err error)
	log   hclog.Logger
}

// start begins to pack, until stop is called.
func (p *packer) start() (stop func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case shelf := <-p.asked:
				p.all(ctx, shelf)
			}
		}
	})
	return func() error {
		cancel()
		wg.Wait()
		return nil
	}
}

// ask has a shelf packed some time. It does not wait.
func (p *packer) ask(shelf int64) {
	select {
	case p.asked <- shelf:
	default:
	}
}

func (p *packer) all(ctx context.Context, shelf int64) {
	for more := true; more && ctx.Err() == nil; {
		var err error
		if more, err = p.pack(ctx, shelf); err != nil && ctx.Err() == nil {
			p.log.Warn("The words of conversations could not be packed; searches stay as they are, and slower", "error", err)
			return
		}
	}
}

// packSome packs the first words of a shelf that are not packed yet, and reports whether there are
// more.
func (s *Store) packSome(ctx context.Context, shelf int64) (more bool, err error) {
	err = s.change(ctx, "packing the words of conversations", func(tx *sql.Tx) error {
		if err := lockShelf(ctx, tx, shelf); err != nil {
			return err
		}
		which, args := ` WHERE shelf = $1`, []any{shelf}
		var word []byte
		var number int64
		err := tx.QueryRowContext(ctx, `SELECT word, number FROM words WHERE shelf = $1 ORDER BY word, number LIMIT 1 OFFSET $2`, shelf, packRows).Scan(&word, &number)
		switch more = err == nil; {
		case more:
			which, args = which+` AND (word, number) < ($2, $3)`, append(args, word, number)
		case !errors.Is(err, sql.ErrNoRows):
			return err
		}
		// Rows that come while this goes on are not returned, and stay.
		rows, err := tx.QueryContext(ctx, `DELETE FROM words`+which+` RETURNING word, number`, args...)
		if err != nil {
			return err
		}
		taken, err := scanPostings(rows)
		if err != nil {
			return err
		}
		return s.dialect.pack(ctx, tx, shelf, taken)
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

// lockShelf makes those wait who would change what is packed of a shelf. Whoever locks a
// conversation, too, does so first.
func lockShelf(ctx context.Context, tx *sql.Tx, shelf int64) error {
	_, err := tx.ExecContext(ctx, `UPDATE shelves SET numbered = numbered WHERE id = $1`, shelf)
	return err
}
