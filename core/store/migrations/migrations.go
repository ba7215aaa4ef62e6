// Package migrations holds the schema of the state as SQL, one file for each step. Every statement is
// valid in SQLite and in PostgreSQL.
package migrations

import "embed"

//go:embed *.sql
var files embed.FS

// Files returns the steps, which goose runs in the order of their numbers.
func Files() embed.FS { return files }
