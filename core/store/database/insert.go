package database

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
)

// Insert collects rows for one table, and writes many of them with each statement.
type Insert struct {
	Into string // INSERT INTO table (columns)
	Then string // the rest of the statement, after the rows
	rows [][]any
}

// MaxArguments is the maximum number of arguments of a statement. Both databases accept far more, but SQLite
// finds each argument by name in a list, which takes quadratic time.
const MaxArguments = 256

// Add adds a row.
func (in *Insert) Add(values ...any) { in.rows = append(in.rows, values) }

// Len returns the number of rows that are waiting to be written.
func (in *Insert) Len() int { return len(in.rows) }

// Exec writes the rows, and removes them from in even if it fails.
func (in *Insert) Exec(ctx context.Context, tx *sql.Tx) error {
	defer func() { in.rows = in.rows[:0] }()
	for rest := in.rows; len(rest) > 0; {
		n := min(len(rest), MaxArguments/len(rest[0]))
		var query strings.Builder
		query.WriteString(in.Into + " VALUES ")
		args := make([]any, 0, n*len(rest[0]))
		for i, row := range rest[:n] {
			if i > 0 {
				query.WriteByte(',')
			}
			for j := range row {
				if j == 0 {
					query.WriteString("($")
				} else {
					query.WriteString(",$")
				}
				query.WriteString(strconv.Itoa(len(args) + j + 1))
			}
			query.WriteByte(')')
			args = append(args, row...)
		}
		query.WriteString(" " + in.Then)
		if _, err := tx.ExecContext(ctx, query.String(), args...); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

// JSONList returns a list as one argument of a statement, for the JSON functions of the database.
func JSONList[T uint32 | string](all []T) string {
	raw, _ := json.Marshal(all) // cannot fail for these types
	return string(raw)
}

// Changed runs a statement in a transaction and reports whether it changed a row.
func Changed(ctx context.Context, tx *sql.Tx, statement string, args ...any) (bool, error) {
	result, err := tx.ExecContext(ctx, statement, args...)
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	return n > 0, err
}

// Change runs a statement in a transaction. The error is unchanged if the statement changed no row.
func Change(ctx context.Context, tx *sql.Tx, unchanged error, statement string, args ...any) error {
	changed, err := Changed(ctx, tx, statement, args...)
	if err == nil && !changed {
		return unchanged
	}
	return err
}

// Missing returns missing if err means that a query for one row found none. It returns other errors unchanged.
func Missing(err, missing error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return missing
	}
	return err
}

// List is like Collect, but outside any transaction.
func List[T any](ctx context.Context, db *Database, what, query string, args []any, read func(row Row) (T, error)) (all []T, err error) {
	err = db.Read(ctx, what, func(ctx context.Context, q Querier) (err error) {
		all, err = Collect(ctx, q, query, args, read)
		return err
	})
	return all, err
}

// Collect returns the rows of a query. It calls read for each row. If there are none, it returns an empty list.
func Collect[T any](ctx context.Context, q Querier, query string, args []any, read func(row Row) (T, error)) ([]T, error) {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	all := []T{}
	for rows.Next() {
		one, err := read(rows)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, rows.Err()
}
