package backup

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/ropewalk/ropewalk/core/store/database"
)

// copyAll copies every row of every table.
func copyAll(ctx context.Context, from, to *sql.Tx) error {
	for _, table := range Tables() {
		if err := copyTable(ctx, from, to, table); err != nil {
			return fmt.Errorf("copying the %s: %w", table, database.Explain(err))
		}
	}
	return nil
}

// stateSetting is the setting that identifies the state for apps' permissions. Copies leave it out.
const stateSetting = "permissions.state"

const maxTogetherBytes = 8 << 20 // bytes of large values copied by one statement

func copyTable(ctx context.Context, from, to *sql.Tx, table string) error {
	query := `SELECT * FROM ` + table
	if table == "settings" { // permissions apply to the state in which they were granted, not to a copy (package apps)
		query += ` WHERE name <> '` + stateSetting + `'`
	}
	rows, err := from.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	size := 0
	batch := database.Insert{Into: `INSERT INTO ` + table + ` (` + strings.Join(columns, ", ") + `)`}
	for rows.Next() {
		values, pointers := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			pointers[i] = &values[i]
		}
		if err := rows.Scan(pointers...); err != nil {
			return err
		}
		batch.Add(values...)
		for _, value := range values {
			if content, ok := value.([]byte); ok {
				size += len(content)
			}
		}
		if batch.Len()*len(columns) >= database.MaxArguments-len(columns) || size > maxTogetherBytes {
			size = 0
			if err := batch.Exec(ctx, to); err != nil {
				return err
			}
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	return batch.Exec(ctx, to)
}

// Tables returns the tables in a backup, each after the tables that it refers to. Tables with short-lived
// content are left out: notices, runs, open questions, pending logins, kept results.
func Tables() []string {
	return []string{
		"users", "identities", "workspaces", "members", "bundles", "bundle_parts", "installations", "pins", "pin_versions", "standing_approvals", "cookies", "api_keys", "settings",
		"accounts", "account_clients", "account_revocations", "account_lists", "account_own_lists", "kept_lists", "views",
		"collections", "conversations", "conversation_accounts", "messages", "attachments", "words", "word_sets", "usage_records",
	}
}
