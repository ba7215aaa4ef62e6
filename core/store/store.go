package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/go-hclog"
)

// Options say where the state is.
type Options struct {
	Path   string // the SQLite file, usually <home>/ropewalk.db; made with mode 0600
	Logger hclog.Logger
}

// Store is the durable state. It is safe for concurrent use. All writes go through one
// connection, so that they queue in the process instead of failing on each other's locks; reads
// have connections of their own and never wait for a write.
type Store struct {
	path    string
	log     hclog.Logger
	write   *sql.DB
	read    *sql.DB
	closers []func() error // in the order of opening
}

// Open opens the state, makes it when it is not there, brings its schema up to date, and sees to
// it that the default workspace and its owner exist. It refuses a state that another server has
// open, one that a newer version wrote, and one that is damaged, each with what to do.
func Open(ctx context.Context, o Options) (*Store, error) {
	s := &Store{path: o.Path, log: o.Logger}
	if s.log == nil {
		s.log = hclog.NewNullLogger()
	}
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("state %s: %w", o.Path, explain(err)), s.Close())
	}
	return s, nil
}

func (s *Store) open(ctx context.Context) error {
	unlock, err := lock(s.path + ".lock")
	if err != nil {
		return err
	}
	s.closers = append(s.closers, unlock)
	if err := private(s.path); err != nil {
		return err
	}
	if s.write, err = openSQLite(s.path, writer()); err != nil {
		return err
	}
	s.closers = append(s.closers, s.write.Close)
	if err := migrate(ctx, s.write, s.log); err != nil {
		return err
	}
	if s.read, err = openSQLite(s.path, readers()); err != nil {
		return err
	}
	s.closers = append(s.closers, s.read.Close)
	_, err = s.EnsureDefaultWorkspace(ctx)
	return err
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
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("%s: %w", what, explain(err))
	}
	if err := do(tx); err != nil {
		return fmt.Errorf("%s: %w", what, explain(errors.Join(err, rollback(tx))))
	}
	if err := tx.Commit(); err != nil {
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

// exec runs one writing statement as its own transaction and returns how many rows it touched.
func (s *Store) exec(ctx context.Context, what, query string, args ...any) (int64, error) {
	result, err := s.write.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", what, explain(err))
	}
	return result.RowsAffected()
}

func millis(t time.Time) int64 { return t.UnixMilli() }

func fromMillis(ms int64) time.Time { return time.UnixMilli(ms).UTC() }
