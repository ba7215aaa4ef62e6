package store

import (
	"database/sql"
	"testing"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/store/database"
	"github.com/ropewalk/ropewalk/internal/testenv"
)

// each runs a test on an SQLite file and on a separate PostgreSQL database.
func each(t *testing.T, test func(t *testing.T, s *Store)) {
	t.Run("sqlite", func(t *testing.T) { test(t, open(t)) })
	t.Run("postgres", func(t *testing.T) { test(t, openURL(t, newDatabase(t))) })
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

// databases is the PostgreSQL server that all tests here share.
var databases testenv.Databases

// newDatabase creates an empty database and returns its address.
func newDatabase(t testing.TB) string {
	t.Helper()
	return databases.New(t)
}

func rawURL(t testing.TB, url string) *sql.DB {
	t.Helper()
	c, err := database.ParseURL(core.Secret(url))
	if err != nil {
		t.Fatal(err)
	}
	db := database.OpenPool(c)
	t.Cleanup(func() { _ = db.Close() })
	return db
}
