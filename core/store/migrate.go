package store

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"

	"github.com/hashicorp/go-hclog"
	"github.com/pressly/goose/v3"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

func migrations(dialect goose.Dialect, db *sql.DB) (*goose.Provider, error) {
	files, err := fs.Sub(migrationFiles, "migrations")
	if err != nil {
		return nil, err
	}
	provider, err := goose.NewProvider(dialect, db, files, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return nil, fmt.Errorf("reading the migrations: %w", err)
	}
	return provider, nil
}

// migrate brings the schema up to date. A schema that is newer than this program is left alone.
func migrate(ctx context.Context, dialect goose.Dialect, db *sql.DB, log hclog.Logger) error {
	provider, err := migrations(dialect, db)
	if err != nil {
		return err
	}
	current, target, err := provider.GetVersions(ctx)
	if err != nil {
		return fmt.Errorf("asking for the schema's version: %w", err)
	}
	if current > target {
		return newerSchema(current, target)
	}
	results, err := provider.Up(ctx)
	if err != nil {
		return fmt.Errorf("bringing the schema from %d to %d: %w", current, target, err)
	}
	if len(results) > 0 {
		log.Info("The schema of the state was brought up to date", "from", current, "to", target)
	}
	return nil
}

func newerSchema(found, known int64) error {
	return fmt.Errorf("a newer ropewalk wrote it (schema %d, this program knows %d): start that version, or restore a backup", found, known)
}
