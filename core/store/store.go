package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
)

// Options say where the state is.
type Options struct {
	Path   string      // the SQLite file, usually <home>/ropewalk.db; made with mode 0600
	URL    core.Secret // of a PostgreSQL database, which is then used instead; Path still names the home
	Logger hclog.Logger
}

// Store is the durable state. It is safe for concurrent use. In a file all writes go through one
// connection, so that they queue in the process instead of failing on each other's locks; reads
// have connections of their own and never wait for a write.
type Store struct {
	log   hclog.Logger
	write *sql.DB
	read  *sql.DB

	dialect dialect
	packer  *packer
	scribe  *scribe // of a file; nil with PostgreSQL
	line    *line   // to the other servers; nil with a file

	closers []func() error // in the order of opening
}

// dialect is where statements for the two databases must differ.
type dialect struct {
	lockRow  string             // ends a SELECT of the rows c that the transaction will change
	snapshot sql.IsolationLevel // at which all reads of a transaction are of one moment
	// numbered begins, after the columns, a SELECT of the conversations c of the shelf $1 whose
	// numbers the JSON array $2 holds; sets one of the words and numbers packed of the shelf $1, the
	// page $2 and the words in the JSON array $3. Both must be planned as look-ups one by one, whatever
	// is known of what is in the tables, and also where a shelf is much larger than others.
	numbered, sets string
	// words is a SELECT of $1, each word of the JSON array $2, $3 and $4.
	words string
}

// Open opens the state, makes it when it is not there, brings its schema up to date, and sees to
// it that the default workspace and its owner exist. It refuses a file that another server has
// open, a state that a newer version wrote, and one that is damaged, each with what to do. A
// PostgreSQL database is for any number of servers at a time.
func Open(ctx context.Context, o Options) (*Store, error) {
	s := &Store{log: o.Logger}
	if s.log == nil {
		s.log = hclog.NewNullLogger()
	}
	where, err := s.open(ctx, o)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("state %s: %w", where, visible(explain(err))), s.Close())
	}
	s.packer = &packer{asked: make(chan int64, packWaits), pack: s.packSome, log: s.log}
	s.closers = append(s.closers, s.packer.start())
	return s, nil
}

// open returns where the state is, for messages.
func (s *Store) open(ctx context.Context, o Options) (where string, err error) {
	if o.Path != "" { // a home is one server's, wherever its state is
		unlock, err := lock(o.Path + ".lock")
		if err != nil {
			return o.Path, err
		}
		s.closers = append(s.closers, unlock)
	}
	if o.URL == "" {
		return o.Path, s.openFile(ctx, o.Path)
	}
	c, err := parseURL(o.URL)
	if err != nil {
		return "in PostgreSQL", err
	}
	return place(c), s.openServer(ctx, c)
}

// Close lets go of the state. Nothing may be called afterwards.
func (s *Store) Close() error {
	var all []error
	for i := len(s.closers) - 1; i >= 0; i-- {
		all = append(all, s.closers[i]())
	}
	s.closers = nil
	return errors.Join(all...)
}

// change runs one writing transaction: all of it is durable when change returns nil, none of it
// ever happened when it returns an error.
func (s *Store) change(ctx context.Context, what string, do func(tx *sql.Tx) error) error {
	if err := inTransaction(ctx, s.write, do); err != nil {
		return fmt.Errorf("%s: %w", what, explain(err))
	}
	return nil
}

// changeShared is change for what happens again and again while people talk. do may be called twice: it must
// leave nothing behind but what it returns last, and what it wrote.
func (s *Store) changeShared(ctx context.Context, what string, do func(tx *sql.Tx) error) error {
	if s.scribe == nil {
		return s.change(ctx, what, do)
	}
	if err := s.scribe.write(ctx, do); err != nil {
		return fmt.Errorf("%s: %w", what, explain(err))
	}
	return nil
}

func inTransaction(ctx context.Context, db *sql.DB, do func(tx *sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := do(tx); err != nil {
		return errors.Join(err, rollback(tx))
	}
	return tx.Commit()
}

// look runs reads that are to be of one moment.
func (s *Store) look(ctx context.Context, what string, do func(tx *sql.Tx) error) error {
	tx, err := s.read.BeginTx(ctx, &sql.TxOptions{Isolation: s.dialect.snapshot, ReadOnly: true})
	if err != nil {
		return fmt.Errorf("%s: %w", what, explain(err))
	}
	if err := errors.Join(do(tx), rollback(tx)); err != nil {
		return fmt.Errorf("%s: %w", what, explain(err))
	}
	return nil
}

// rollback undoes a transaction; one that the driver has ended already is no further error.
func rollback(tx *sql.Tx) error {
	if err := tx.Rollback(); err != nil && !errors.Is(err, sql.ErrTxDone) {
		return err
	}
	return nil
}

func millis(t time.Time) int64 { return t.UnixMilli() }

func fromMillis(ms int64) time.Time { return time.UnixMilli(ms).UTC() }
