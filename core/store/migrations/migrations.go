// Package migrations owns the schema of the state: the baseline and the steps that follow it, with one SQL file for each.
// It decides which versions this program can bring up to date. Every statement is valid in both SQLite and PostgreSQL.
package migrations

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"

	"github.com/hashicorp/go-hclog"
	"github.com/pressly/goose/v3"
)

//go:embed *.sql
var files embed.FS

// baseline is the version of the first file, which creates the whole schema. The steps before it were never released.
const baseline = 62

// Latest returns the version to which Apply brings a schema.
func Latest() int64 {
	names, _ := fs.Glob(files, "*.sql") // the pattern is valid
	version, _ := goose.NumericComponent(names[len(names)-1])
	return version
}

// Version returns the version of a database's schema, or 0 if it has none.
func Version(ctx context.Context, dialect goose.Dialect, db *sql.DB) (int64, error) {
	provider, err := newProvider(dialect, db)
	if err != nil {
		return 0, err
	}
	return provider.GetDBVersion(ctx)
}

// Apply brings the schema up to date. It leaves a schema that Check rejects unchanged.
func Apply(ctx context.Context, dialect goose.Dialect, db *sql.DB, log hclog.Logger) error {
	provider, err := newProvider(dialect, db)
	if err != nil {
		return err
	}
	current, err := provider.GetDBVersion(ctx)
	if err != nil {
		return fmt.Errorf("reading the schema's version: %w", err)
	}
	if err := Check(current); err != nil {
		return err
	}
	results, err := provider.Up(ctx)
	if err != nil {
		return fmt.Errorf("bringing the schema from %d to %d: %w", current, Latest(), err)
	}
	if len(results) > 0 {
		log.Info("database schema updated", "from", current, "to", Latest())
	}
	return nil
}

// Check returns an error if this program cannot bring the version up to date. 0 means a database without a schema.
func Check(found int64) error {
	switch latest := Latest(); {
	case found > latest:
		return fmt.Errorf("it was written by a newer ropewalk (schema %d, but this program supports only %d); start that version, or restore a backup", found, latest)
	case found > 0 && found < baseline:
		return fmt.Errorf("it was written by an older ropewalk (schema %d, but this program supports only %d and newer); start a version with schema %d once, which updates it, or restore a newer backup",
			found, baseline, baseline)
	}
	return nil
}

// Replay recreates the schema of one SQLite database in another, empty one: it applies the baseline and the later steps
// that were applied there, in the same order.
func Replay(ctx context.Context, from, to *sql.DB) error {
	rows, err := from.QueryContext(ctx, `SELECT version_id FROM goose_db_version WHERE is_applied AND version_id >= $1 ORDER BY id`, baseline)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	provider, err := newProvider(goose.DialectSQLite3, to)
	if err != nil {
		return err
	}
	for rows.Next() {
		var version int64
		if err := rows.Scan(&version); err != nil {
			return fmt.Errorf("it is not a ropewalk database: %w", err)
		}
		if _, err := provider.ApplyVersion(ctx, version, true); err != nil {
			return fmt.Errorf("it is not a ropewalk database: its schema cannot be created: %w", err)
		}
	}
	return rows.Err()
}

func newProvider(dialect goose.Dialect, db *sql.DB) (*goose.Provider, error) {
	// A step with a lower number may be newer than an applied one, because steps are written in parallel.
	provider, err := goose.NewProvider(dialect, db, files, goose.WithDisableGlobalRegistry(true), goose.WithAllowOutofOrder(true))
	if err != nil {
		return nil, fmt.Errorf("reading the migrations: %w", err)
	}
	return provider, nil
}
