package database

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/hashicorp/go-hclog"
	"github.com/pressly/goose/v3"

	"github.com/ropewalk/ropewalk/core/store/migrations"
)

// Migrations returns what brings the schema of a database up to date.
func Migrations(dialect goose.Dialect, db *sql.DB) (*goose.Provider, error) {
	// Steps have numbers of ranges, so a step of a lower number may be newer than one that was applied.
	provider, err := goose.NewProvider(dialect, db, migrations.Files(), goose.WithDisableGlobalRegistry(true), goose.WithAllowOutofOrder(true))
	if err != nil {
		return nil, fmt.Errorf("reading the migrations: %w", err)
	}
	return provider, nil
}

// Migrate brings the schema up to date. A schema that is newer than this program is refused.
func Migrate(ctx context.Context, dialect goose.Dialect, db *sql.DB, log hclog.Logger) error {
	provider, err := Migrations(dialect, db)
	if err != nil {
		return err
	}
	current, target, err := provider.GetVersions(ctx)
	if err != nil {
		return fmt.Errorf("asking for the schema's version: %w", err)
	}
	if current > target {
		return NewerSchema(current, target)
	}
	results, err := provider.Up(ctx)
	if err != nil {
		return fmt.Errorf("bringing the schema from %d to %d: %w", current, target, err)
	}
	if len(results) > 0 {
		log.Info("schema of the state updated", "from", current, "to", target)
	}
	return nil
}

// NewerSchema is the error about a schema that this program does not know.
func NewerSchema(found, known int64) error {
	return fmt.Errorf("a newer ropewalk wrote it (schema %d, this program knows %d): start that version, or restore a backup", found, known)
}
