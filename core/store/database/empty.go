package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/pressly/goose/v3"

	"github.com/ropewalk/ropewalk/core/store/migrations"
)

// A database without a schema usually means a first start. But if there are files of installed apps, it is more
// likely that the database was lost, or that storage.url refers to the wrong one. Starting with an empty database
// would look as if everything had been deleted.

// CheckNewFile returns an error if the database file at path would have to be created although there are installed apps.
func CheckNewFile(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	case err == nil && info.Size() > 0:
		return nil
	}
	return refuseBesideApps(filepath.Dir(path), "the file is missing or empty")
}

// CheckNewServer returns an error if a PostgreSQL database has no schema although there are installed apps.
func CheckNewServer(ctx context.Context, db *sql.DB, path string) error {
	version, err := migrations.Version(ctx, goose.DialectPostgres, db)
	if err != nil || version > 0 || path == "" {
		return err
	}
	return refuseBesideApps(filepath.Dir(path), "the database is empty")
}

func refuseBesideApps(home, reason string) error {
	apps := filepath.Join(home, "apps")
	entries, err := os.ReadDir(apps)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			return fmt.Errorf("%s, but %s contains the files of apps such as %s; restore a backup, check storage.url, "+
				"or move that directory away to start from scratch", reason, apps, e.Name())
		}
	}
	return nil
}
