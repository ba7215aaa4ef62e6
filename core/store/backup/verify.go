package backup

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/core/store/database"
	"github.com/ropewalk/ropewalk/core/store/migrations"
	"github.com/ropewalk/ropewalk/core/store/seal"
)

// Verify reads a whole file and returns nil if it is a valid backup, or else an error that describes what is wrong with it.
func Verify(ctx context.Context, path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err // checked first because opening the file would create it
	case !info.Mode().IsRegular():
		return errors.New("it is not a regular file")
	}
	db, err := database.OpenSQLite(path, database.Reader())
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	err = verifySchema(ctx, db, info.Size())
	if err == nil {
		err = verifyDatabase(ctx, db)
	}
	if database.Damaged(err) { // the usual advice, to restore a backup, makes no sense here
		return errors.New("the file is damaged or is not a backup; choose another one")
	}
	return err
}

// verifySchema returns an error for content that is never part of the state and that the checksums do not cover. This includes
// bytes after the last page, because a restore would copy any number of them. It also includes triggers and views,
// which would run in the server with every read or write of their table.
func verifySchema(ctx context.Context, db *sql.DB, size int64) error {
	var pages, pageSize int64
	if err := db.QueryRowContext(ctx, `SELECT page_count, page_size FROM pragma_page_count, pragma_page_size`).Scan(&pages, &pageSize); err != nil {
		return database.Explain(err)
	}
	if size > pages*pageSize {
		return fmt.Errorf("the file is damaged: it is %d bytes long, but its %d pages of %d bytes take up less", size, pages, pageSize)
	}
	var kind, name string
	err := db.QueryRowContext(ctx, `SELECT type, name FROM sqlite_master WHERE type NOT IN ('table', 'index') OR sql LIKE 'CREATE VIRTUAL%' LIMIT 1`).Scan(&kind, &name)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil
	case err != nil:
		return database.Explain(err)
	}
	return fmt.Errorf("the file was modified: it contains the %s %q, which is not part of a ropewalk database", kind, name)
}

// CheckKeys returns nil if the keys decrypt every encrypted record in a backup, or else an error that describes what is
// wrong.
func CheckKeys(ctx context.Context, path string, keys *seal.Keys) error {
	db, err := database.OpenSQLite(path, database.Reader())
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	return seal.Check(ctx, db, keys)
}

func verifyDatabase(ctx context.Context, db *sql.DB) error {
	var verdict string
	if err := db.QueryRowContext(ctx, `PRAGMA integrity_check(1)`).Scan(&verdict); err != nil {
		return database.Explain(err)
	}
	if verdict != "ok" {
		return fmt.Errorf("the file is damaged: %s", verdict)
	}
	var version int64
	if err := db.QueryRowContext(ctx, `SELECT MAX(version_id) FROM goose_db_version WHERE is_applied`).Scan(&version); err != nil {
		return fmt.Errorf("it is not a ropewalk database: %w", database.Explain(err))
	}
	if err := migrations.Check(version); err != nil {
		return err
	}
	broken, err := db.QueryContext(ctx, `PRAGMA foreign_key_check`)
	if err != nil {
		return database.Explain(err)
	}
	defer func() { _ = broken.Close() }()
	if broken.Next() {
		return errors.New("the file is damaged: it contains rows that refer to missing ones")
	}
	if err := broken.Err(); err != nil {
		return err
	}
	if err := verifyDefinitions(ctx, db); err != nil {
		return err
	}
	return verifySums(ctx, db)
}

// verifyDefinitions returns an error for tables and indexes that are never part of the state, or that have a different
// definition. The checksums do not cover definitions, and their expressions run in the server. The expected definitions
// are those that the file's migrations produce.
func verifyDefinitions(ctx context.Context, db *sql.DB) (err error) {
	dir, err := os.MkdirTemp("", "ropewalk-schema-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	model, err := database.OpenSQLite(filepath.Join(dir, "model.db"), database.Copier())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, model.Close()) }()
	if err := migrations.Replay(ctx, db, model); err != nil {
		return err
	}
	found, err := readDefinitions(ctx, db)
	if err != nil {
		return err
	}
	wanted, err := readDefinitions(ctx, model)
	if err != nil {
		return err
	}
	wanted[`table "`+database.BackupSums+`"`] = canonical(createSums)
	for what, text := range found {
		switch want, known := wanted[what]; {
		case !known:
			return fmt.Errorf("the file was modified: it contains the %s, which is not part of a ropewalk database", what)
		case want != text:
			return fmt.Errorf("the file was modified: its %s differs from the one that ropewalk creates", what)
		}
	}
	for what := range wanted {
		if _, there := found[what]; !there && what != `table "`+database.BackupSums+`"` { // older versions wrote no checksums
			return fmt.Errorf("the file was modified: the %s is missing", what)
		}
	}
	return nil
}

// readDefinitions returns the tables and indexes of a database with their canonical statements. It leaves out the
// tables of SQLite itself, and indexes of constraints, which have no statement.
func readDefinitions(ctx context.Context, db *sql.DB) (map[string]string, error) {
	rows, err := db.QueryContext(ctx, `SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT IN ('sqlite_sequence', 'sqlite_stat1', 'sqlite_stat4')`)
	if err != nil {
		return nil, database.Explain(err)
	}
	defer func() { _ = rows.Close() }()
	all := map[string]string{}
	for rows.Next() {
		var kind, name, text string
		if err := rows.Scan(&kind, &name, &text); err != nil {
			return nil, err
		}
		all[fmt.Sprintf("%s %q", kind, name)] = canonical(text)
	}
	return all, rows.Err()
}

// canonical returns a CREATE TABLE or CREATE INDEX statement in a form that can be compared: SQLite quotes the names of
// renamed tables, and puts added columns after the constraints.
func canonical(statement string) string {
	statement = regexp.MustCompile(`"(\w+)"`).ReplaceAllString(statement, "$1")
	statement = strings.Join(strings.Fields(statement), " ")
	begin, end := strings.IndexByte(statement, '('), strings.LastIndexByte(statement, ')')
	if begin < 0 || end < begin || !strings.HasPrefix(statement, "CREATE TABLE ") {
		return statement
	}
	var parts []string
	depth, from, inside := 0, 0, statement[begin+1:end]
	for i, r := range inside + "," {
		switch {
		case r == '(':
			depth++
		case r == ')':
			depth--
		case r == ',' && depth == 0:
			parts = append(parts, strings.TrimSpace(inside[from:i]))
			from = i + 1
		}
	}
	slices.Sort(parts)
	return statement[:begin] + "(" + strings.Join(parts, ", ") + ")" + statement[end+1:]
}
