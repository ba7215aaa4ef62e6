package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/internal/testenv"
)

// each runs a test on an SQLite file and on a PostgreSQL database of its own.
func each(t *testing.T, test func(t *testing.T, s *Store)) {
	t.Run("sqlite", func(t *testing.T) { test(t, open(t)) })
	t.Run("postgres", func(t *testing.T) { test(t, openURL(t, database(t))) })
}

func openURL(t testing.TB, url string) *Store {
	t.Helper()
	s, err := Open(t.Context(), Options{URL: core.Secret(url)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// database makes an empty database and returns its address.
func database(t testing.TB) string {
	t.Helper()
	url := server.url(t)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	name := "test_" + strings.ToLower(rand.Text())
	if _, err := conn.Exec(t.Context(), "CREATE DATABASE "+name); err != nil {
		t.Fatal(err)
	}
	return strings.Replace(url, "/postgres?", "/"+name+"?", 1)
}

func rawURL(t testing.TB, url string) *sql.DB {
	t.Helper()
	c, err := parseURL(core.Secret(url))
	if err != nil {
		t.Fatal(err)
	}
	db := openPool(c)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// server is the one PostgreSQL of all tests here. The first that needs it starts it.
var server shared

type shared struct {
	once     sync.Once
	postgres *testenv.Postgres
	ends     []func()
}

func (s *shared) url(t testing.TB) string {
	t.Helper()
	s.once.Do(func() { s.postgres = testenv.StartPostgres(&outliving{t, s}) })
	if s.postgres == nil {
		t.Fatal("PostgreSQL did not start for an earlier test")
	}
	return s.postgres.URL
}

// outliving is a test whose clean-ups wait for the end of all tests.
type outliving struct {
	testing.TB
	s *shared
}

func (o *outliving) Context() context.Context { return context.Background() }
func (o *outliving) Cleanup(f func())         { o.s.ends = append(o.s.ends, f) }

// withPostgres ends the PostgreSQL after the last test, before leaks are looked for.
type withPostgres struct{ m *testing.M }

func (w withPostgres) Run() int {
	code := w.m.Run()
	for i := len(server.ends) - 1; i >= 0; i-- {
		server.ends[i]()
	}
	return code
}
