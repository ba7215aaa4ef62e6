package store

import (
	"context"
	"database/sql"
	"strconv"
	"strings"
)

// inserting gathers rows for one table and writes many of them with each statement.
type inserting struct {
	into string // INSERT INTO table (columns)
	then string // what follows the rows
	rows [][]any
}

// maxArguments of one statement. Both databases take far more, but SQLite looks each up by its name
// among all: what that costs grows with their square.
const maxArguments = 256

func (in *inserting) add(values ...any) { in.rows = append(in.rows, values) }

// run writes the rows and forgets them.
func (in *inserting) run(ctx context.Context, tx *sql.Tx) error {
	defer func() { in.rows = in.rows[:0] }()
	for rest := in.rows; len(rest) > 0; {
		n := min(len(rest), maxArguments/len(rest[0]))
		var query strings.Builder
		query.WriteString(in.into + " VALUES ")
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
		query.WriteString(" " + in.then)
		if _, err := tx.ExecContext(ctx, query.String(), args...); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}
