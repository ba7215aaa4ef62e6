package database

import (
	"context"
	"database/sql"
	"strconv"
	"strings"
)

// Insert collects rows for one table and writes many of them with each statement.
type Insert struct {
	Into string // INSERT INTO table (columns)
	Then string // what follows the rows
	rows [][]any
}

// MaxArguments of one statement. Both databases take far more, but SQLite finds each by its name in a
// list of all, which takes time that grows with their square.
const MaxArguments = 256

// Add adds a row.
func (in *Insert) Add(values ...any) { in.rows = append(in.rows, values) }

// Len returns how many rows wait to be written.
func (in *Insert) Len() int { return len(in.rows) }

// Exec writes the rows, and empties the collection.
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
