package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
)

// Store is a sessionstore.Store in PostgreSQL. It is ready after Configure.
type Store struct {
	pool    *pgxpool.Pool
	sql     statements
	timeout time.Duration
	log     hclog.Logger
	purge   purger
}

// New returns a store that needs Configure.
func New() *Store { return &Store{log: hclog.NewNullLogger()} }

// Name returns "postgres".
func (*Store) Name() string { return "postgres" }

// UseLogger implements plugins.LoggerUser.
func (s *Store) UseLogger(log hclog.Logger) { s.log = log }

// Validate implements plugins.Validator.
func (*Store) Validate(_ context.Context, c plugins.Config) error {
	config := defaults()
	return c.Decode(&config)
}

// Configure implements plugins.Configurer. It returns an error unless PostgreSQL responds.
func (s *Store) Configure(ctx context.Context, c plugins.Config) error {
	config := defaults()
	if err := c.Decode(&config); err != nil {
		return err
	}
	pool, err := config.pool()
	if err != nil {
		return err
	}
	s.timeout = time.Duration(config.Timeout)
	s.sql = statementsFor(config.identifier())
	ours := context.WithoutCancel(ctx) // the pool outlives this call
	if s.pool, err = pgxpool.NewWithConfig(ours, pool); err != nil {
		return unavailable(err)
	}
	if err := s.bounded(ctx, func(ctx context.Context) error { return s.prepare(ctx, config.identifier()) }); err != nil {
		s.pool.Close()
		s.pool = nil
		return err
	}
	s.purge.start(ours, time.Duration(config.PurgeEvery), s.purgeExpired)
	return nil
}

// Close implements io.Closer.
func (s *Store) Close() error {
	s.purge.stop()
	if s.pool != nil {
		s.pool.Close()
	}
	return nil
}

// Put implements sessionstore.Store.
func (s *Store) Put(ctx context.Context, rec sessionstore.Record, ttl time.Duration) error {
	if err := sessionstore.CheckPut(rec, ttl); err != nil {
		return err
	}
	if !storable(rec.ID) {
		return fmt.Errorf("%w: the id of a session must not hold a NUL", plugins.ErrInvalid)
	}
	body, err := json.Marshal(rec)
	if err != nil {
		return err
	}
	return s.exec(ctx, s.sql.put, rec.ID, body, rec.LastAccessedAt, micros(ttl))
}

// Get implements sessionstore.Store.
func (s *Store) Get(ctx context.Context, id string) (sessionstore.Record, error) {
	if !storable(id) {
		return sessionstore.Record{}, fmt.Errorf("session: %w", plugins.ErrNotFound)
	}
	var body []byte
	var at, expires time.Time
	err := s.bounded(ctx, func(ctx context.Context) error {
		return s.pool.QueryRow(ctx, s.sql.get, id).Scan(&body, &at, &expires)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return sessionstore.Record{}, fmt.Errorf("session: %w", plugins.ErrNotFound)
	}
	if err != nil {
		return sessionstore.Record{}, err
	}
	var rec sessionstore.Record
	if err := json.Unmarshal(body, &rec); err != nil {
		return sessionstore.Record{}, errors.New("the session in postgres is not readable; give this store a table of its own")
	}
	rec.LastAccessedAt, rec.ExpiresAt = at.UTC(), expires.UTC()
	return rec, nil
}

// Durable implements sessionstore.Durable.
func (*Store) Durable() {}

// Touch implements sessionstore.Store, in one statement.
func (s *Store) Touch(ctx context.Context, batch []sessionstore.Touch) error {
	if err := sessionstore.CheckTouch(batch); err != nil || len(batch) == 0 {
		return err
	}
	ids, ats, ttls := make([]string, 0, len(batch)), make([]time.Time, 0, len(batch)), make([]int64, 0, len(batch))
	for _, touch := range batch {
		if storable(touch.ID) {
			ids, ats, ttls = append(ids, touch.ID), append(ats, touch.LastAccessedAt), append(ttls, micros(touch.TTL))
		}
	}
	return s.exec(ctx, s.sql.touch, ids, ats, ttls)
}

// Delete implements sessionstore.Store.
func (s *Store) Delete(ctx context.Context, id string) error {
	if !storable(id) {
		return nil
	}
	return s.exec(ctx, s.sql.remove, id)
}

func (s *Store) exec(ctx context.Context, sql string, args ...any) error {
	return s.bounded(ctx, func(ctx context.Context) error {
		_, err := s.pool.Exec(ctx, sql, args...)
		return err
	})
}

// bounded runs do within the configured timeout. It turns every error except pgx.ErrNoRows into plugins.ErrUnavailable.
func (s *Store) bounded(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	err := do(ctx)
	if err == nil || errors.Is(err, pgx.ErrNoRows) {
		return err
	}
	return unavailable(err)
}

func unavailable(err error) error { return fmt.Errorf("postgres: %w: %w", plugins.ErrUnavailable, err) }

func storable(id string) bool { return !strings.ContainsRune(id, 0) }

func micros(d time.Duration) int64 { return max(1, d.Microseconds()) }
