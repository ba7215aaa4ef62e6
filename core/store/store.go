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

// Options configure a Store.
type Options struct {
	Path   string      // the SQLite file, usually <home>/ropewalk.db; created with mode 0600
	URL    core.Secret // a PostgreSQL database to use instead of the file; Path still determines the home
	Logger hclog.Logger
	// Observer measures calls to the database; nil measures nothing.
	Observer database.Observer
	// Keys encrypts records that contain secrets; nil encrypts nothing.
	Keys *seal.Keys
	// Retention is how long records are kept.
	Retention Retention
	// Quota limits what one person may store.
	Quota Quota
}

// Location returns where the state is stored, for packages that do not use a Store.
func (o Options) Location() database.Location { return database.Location{Path: o.Path, URL: o.URL} }

// Store is the durable state. It is safe for concurrent use.
type Store struct {
	log     hclog.Logger
	quota   Quota
	db      *database.Database
	keys    atomic.Pointer[seal.Keys] // nil encrypts nothing
	index   *search.Index
	cluster *cluster.Cluster // nil for a file, which cannot be shared
	health  health
	members memberWatchers

	closers []func() error // in the order of opening
}

// Open opens the state, or creates it if it does not exist. It brings the schema up to date, and ensures
// that the default workspace and its owner exist. It returns an error that includes what to do if another server
// has the file open, a newer version wrote the state, the file is damaged, or a key for its records is missing.
// It encrypts records that are not encrypted with the first key. Any number of servers may open the same
// PostgreSQL database.
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

// UseKeys sets the keys for state that has none. Records that are stored in plain text are encrypted on the next start.
func (s *Store) UseKeys(keys *seal.Keys) { s.keys.CompareAndSwap(nil, keys) }

// Stats returns statistics about the connections of the database.
func (s *Store) Stats() database.Stats { return s.db.Stats() }

// open opens the state. It returns where the state is, for messages.
func (s *Store) open(ctx context.Context, o Options) (where string, err error) {
	if o.Path != "" { // only one server may use a home at a time, even if its state is elsewhere
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

// openServer opens the state in a PostgreSQL database, and joins the cluster of servers there.
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

// renewRecords encrypts records with the first key if they are stored in plain text or with another key.
func (s *Store) renewRecords(ctx context.Context) error {
	n, err := seal.Renew(ctx, s.db, s.keys.Load())
	if err != nil {
		return err
	}
	if n > 0 {
		s.log.Info("app records encrypted", "apps", n, "key", s.keys.Load().ID())
	}
	if err := seal.Rewrite(ctx, s.db, s.keys.Load()); err != nil {
		s.log.Warn("the database may still contain earlier versions of apps' records; retrying on the next start", "error", err)
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

// checkInterval is how long the result of a write check is reused, because each check waits for the disk.
const checkInterval = 2 * time.Second

// health is the result of the latest write check. The zero value has none.
type health struct {
	mu  sync.Mutex
	at  time.Time
	err error
}

// CheckWritable returns nil if the state accepts writes. The error is core.CodeUnavailable, with the reason, if the
// database cannot be reached, its disk is full, or its file is gone. The result may be up to 2 s old.
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
	if ctx.Err() == nil { // a cancelled check reveals nothing about the state
		s.health.at, s.health.err = time.Now(), err
	}
	return err
}
