package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/jackc/pgx/v5"
	"github.com/pressly/goose/v3"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/store/cluster"
	"github.com/ropewalk/ropewalk/core/store/database"
	"github.com/ropewalk/ropewalk/core/store/migrations"
	"github.com/ropewalk/ropewalk/core/store/seal"
	"github.com/ropewalk/ropewalk/core/store/search"
)

// Options say where the state is.
type Options struct {
	Path   string      // the SQLite file, usually <home>/ropewalk.db; made with mode 0600
	URL    core.Secret // of a PostgreSQL database, which is then used instead; Path still names the home
	Logger hclog.Logger
	// Observer measures the calls of the database; nil measures nothing.
	Observer database.Observer
	// Keys encrypt the records that hold secrets; nil encrypts nothing.
	Keys *seal.Keys
	// Retention is for how long records are kept.
	Retention Retention
	// Quota is what one person may store.
	Quota Quota
}

// Location is where the state is, for packages that do not open it.
func (o Options) Location() database.Location { return database.Location{Path: o.Path, URL: o.URL} }

// Store is the durable state. It is safe for concurrent use.
type Store struct {
	log     hclog.Logger
	quota   Quota
	db      *database.Database
	keys    atomic.Pointer[seal.Keys] // nil encrypts nothing
	index   *search.Index
	cluster *cluster.Cluster // nil with a file, which no other server shares
	health  health
	members memberWatchers

	closers []func() error // in the order of opening
}

// Open opens the state, makes it when it does not exist, brings its schema up to date, and makes sure
// that the default workspace and its owner exist. It refuses a file that another server has open, a
// state that a newer version wrote, one that is damaged, and one whose records it has no key for, and says
// what to do. Records that are not encrypted with the first key are encrypted with it. Any number of
// servers may open a PostgreSQL database at a time.
func Open(ctx context.Context, o Options) (*Store, error) {
	s := &Store{log: o.Logger, quota: o.Quota}
	s.keys.Store(o.Keys)
	if s.log == nil {
		s.log = hclog.NewNullLogger()
	}
	where, err := s.open(ctx, o)
	if err == nil {
		err = s.renewRecords(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("state %s: %w", where, database.Visible(database.Explain(err))), s.Close())
	}
	s.index = search.New(s.db, s.log, search.DefaultLimits())
	s.closers = append(s.closers, s.index.Start())
	if o.Retention != (Retention{}) {
		s.closers = append(s.closers, s.startPurging(o.Retention))
	}
	return s, nil
}

// UseKeys encrypts from now on, in a state that had no keys. What is stored in plain is encrypted at the next start.
func (s *Store) UseKeys(keys *seal.Keys) { s.keys.CompareAndSwap(nil, keys) }

// Stats returns the connections of the database.
func (s *Store) Stats() database.Stats { return s.db.Stats() }

// open returns where the state is, for messages.
func (s *Store) open(ctx context.Context, o Options) (where string, err error) {
	if o.Path != "" { // one server has a home at a time, wherever its state is
		unlock, err := database.Lock(o.Path + ".lock")
		if err != nil {
			return o.Path, err
		}
		s.closers = append(s.closers, unlock)
	}
	if o.URL == "" {
		return o.Path, s.openFile(ctx, o)
	}
	c, err := database.ParseURL(o.URL)
	if err != nil {
		return "in PostgreSQL", err
	}
	return database.Address(c), s.openServer(ctx, c, o)
}

func (s *Store) openFile(ctx context.Context, o Options) (err error) {
	if err := database.CheckNewFile(o.Path); err != nil {
		return err
	}
	if s.db, err = database.OpenFile(ctx, o.Path, s.log); err != nil {
		return err
	}
	s.db.Observe(o.Observer)
	s.closers = append(s.closers, s.db.Close)
	_, err = s.EnsureDefaultWorkspace(ctx)
	return err
}

// openServer opens the state in a PostgreSQL database, and joins the other servers there.
func (s *Store) openServer(ctx context.Context, c *pgx.ConnConfig, o Options) error {
	joined, err := cluster.Connect(ctx, c, s.log)
	if err != nil {
		return err
	}
	s.db = database.OpenServer(c, s.log)
	s.db.Observe(o.Observer)
	s.closers = append(s.closers, s.db.Close)
	pool := database.OpenPool(c)
	err = database.Exclusively(ctx, pool, database.LockSchema, func() error {
		if err := database.CheckNewServer(ctx, pool, o.Path); err != nil {
			return err
		}
		if err := migrations.Apply(ctx, goose.DialectPostgres, pool, s.log); err != nil {
			return err
		}
		_, err := s.EnsureDefaultWorkspace(ctx)
		return err
	})
	if err = errors.Join(err, pool.Close()); err != nil {
		joined.Disconnect(ctx)
		return err
	}
	stop, err := joined.Start(ctx, s.db)
	if err != nil {
		return err
	}
	s.cluster = joined
	s.closers = append(s.closers, stop)
	return nil
}

// renewRecords encrypts with the first key what is stored in plain or with another key.
func (s *Store) renewRecords(ctx context.Context) error {
	n, err := seal.Renew(ctx, s.db, s.keys.Load())
	if err != nil {
		return err
	}
	if n > 0 {
		s.log.Info("records of apps encrypted", "apps", n, "key", s.keys.Load().ID())
	}
	if err := seal.Rewrite(ctx, s.db, s.keys.Load()); err != nil {
		s.log.Warn("the database may still contain earlier records of apps; trying again at the next start", "error", err)
	}
	return nil
}

// Close releases the state. No method may be called afterwards.
func (s *Store) Close() error {
	var all []error
	for i := len(s.closers) - 1; i >= 0; i-- {
		all = append(all, s.closers[i]())
	}
	s.closers = nil
	return errors.Join(all...)
}

// checkInterval is how long the result of a write check holds: each check waits for the disk.
const checkInterval = 2 * time.Second

// health is the result of the latest write check. The zero value has none.
type health struct {
	mu  sync.Mutex
	at  time.Time
	err error
}

// CheckWritable reports whether the state takes writes: core.CodeUnavailable with the reason when the
// database cannot be reached, its disk is full, or its file is gone. The result is at most 2 s old.
func (s *Store) CheckWritable(ctx context.Context) error {
	s.health.mu.Lock()
	defer s.health.mu.Unlock()
	if time.Since(s.health.at) < checkInterval {
		return s.health.err
	}
	err := s.db.Update(ctx, "checking that the state is writable", func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO counters (name, n) VALUES ('check', $1) ON CONFLICT (name) DO UPDATE SET n = excluded.n`, database.Millis(time.Now()))
		return err
	})
	if ctx.Err() == nil { // a caller that left says nothing about the state
		s.health.at, s.health.err = time.Now(), err
	}
	return err
}
