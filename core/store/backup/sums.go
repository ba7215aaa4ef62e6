package backup

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"math"
	"slices"

	"github.com/ropewalk/ropewalk/core/store/database"
)

// A backup has a separate table with a checksum of each of its tables. SQLite checks the structure of a file but
// not the content of its rows. Without checksums, a flipped bit in a message would be restored.

const createSums = `CREATE TABLE ` + database.BackupSums + ` (part TEXT PRIMARY KEY, rows BIGINT NOT NULL, sha256 TEXT NOT NULL)`

// writeSums adds the checksums to a backup that is otherwise complete.
func writeSums(ctx context.Context, path string) error {
	db, err := database.OpenSQLite(path, database.Copier())
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	return database.InTransaction(ctx, db, func(tx *sql.Tx) error {
		for _, statement := range []string{`DROP TABLE IF EXISTS ` + database.BackupSums, createSums} {
			if _, err := tx.ExecContext(ctx, statement); err != nil {
				return err
			}
		}
		for _, table := range Tables() {
			if there, err := hasTable(ctx, tx, table); err != nil || !there { // older versions lack some tables
				if err != nil {
					return err
				}
				continue
			}
			rows, sum, err := sumTable(ctx, tx, table)
			if err != nil {
				return fmt.Errorf("computing the sum of %s: %w", table, err)
			}
			if _, err := tx.ExecContext(ctx, `INSERT INTO `+database.BackupSums+` (part, rows, sha256) VALUES ($1, $2, $3)`, table, rows, sum); err != nil {
				return err
			}
		}
		return nil
	})
}

type part struct {
	name, sum string
	rows      int64
}

// verifySums compares a backup's tables with its checksums. A backup from a version that wrote none passes.
func verifySums(ctx context.Context, db *sql.DB) error {
	there, err := hasTable(ctx, db, database.BackupSums)
	if err != nil || !there {
		return err
	}
	parts, err := readParts(ctx, db)
	if err != nil {
		return fmt.Errorf("the file is damaged: its checksums cannot be read: %w", err)
	}
	if err := checkParts(ctx, db, parts); err != nil {
		return err
	}
	for _, p := range parts {
		rows, sum, err := sumTable(ctx, db, p.name)
		if err != nil {
			return fmt.Errorf("the file is damaged: part %s cannot be read: %w", p.name, err)
		}
		if rows != p.rows || sum != p.sum {
			return fmt.Errorf("the file is damaged: part %s has %d rows with SHA-256 %s, but had %d rows with %s when the backup was made", p.name, rows, sum, p.rows, p.sum)
		}
	}
	return nil
}

// checkParts returns an error unless the checksums cover exactly those of Tables that the backup contains. A backup from an
// older version may lack tables.
func checkParts(ctx context.Context, db *sql.DB, parts []part) error {
	for _, p := range parts {
		if !slices.Contains(Tables(), p.name) {
			return fmt.Errorf("the file is damaged: %.50q is not part of a backup", p.name)
		}
	}
	for _, table := range Tables() {
		if slices.ContainsFunc(parts, func(p part) bool { return p.name == table }) {
			continue
		}
		there, err := hasTable(ctx, db, table)
		if err != nil {
			return err
		}
		if there {
			return fmt.Errorf("the file is damaged: the checksum of part %s is missing", table)
		}
	}
	return nil
}

func hasTable(ctx context.Context, q database.Querier, table string) (there bool, err error) {
	err = q.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = $1)`, table).Scan(&there)
	return there, err
}

func readParts(ctx context.Context, q database.Querier) ([]part, error) {
	rows, err := q.QueryContext(ctx, `SELECT part, rows, sha256 FROM `+database.BackupSums+` ORDER BY part`)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	var all []part
	for rows.Next() {
		var p part
		if err := rows.Scan(&p.name, &p.rows, &p.sum); err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("there are none")
	}
	return all, rows.Err()
}

// sumTable returns the number of rows in a table of a backup, and the SHA-256 of their columns and values.
func sumTable(ctx context.Context, q database.Querier, table string) (count int64, sum string, err error) {
	rows, err := q.QueryContext(ctx, `SELECT * FROM "`+table+`" ORDER BY rowid`)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	if err != nil {
		return 0, "", err
	}
	h := sha256.New()
	for _, c := range columns {
		addValue(h, c)
	}
	values, pointers := make([]any, len(columns)), make([]any, len(columns))
	for i := range values {
		pointers[i] = &values[i]
	}
	for ; rows.Next(); count++ {
		if err := rows.Scan(pointers...); err != nil {
			return 0, "", err
		}
		for _, v := range values {
			addValue(h, v)
		}
	}
	return count, hex.EncodeToString(h.Sum(nil)), rows.Err()
}

// addValue adds a value to a checksum, in an encoding that is unique for each list of values.
func addValue(h hash.Hash, value any) {
	kind, content := byte('n'), []byte(nil)
	switch v := value.(type) {
	case int64:
		kind, content = 'i', binary.BigEndian.AppendUint64(nil, uint64(v))
	case float64:
		kind, content = 'f', binary.BigEndian.AppendUint64(nil, math.Float64bits(v))
	case string:
		kind, content = 's', []byte(v)
	case []byte:
		kind, content = 'b', v
	}
	_, _ = h.Write(binary.BigEndian.AppendUint64([]byte{kind}, uint64(len(content)))) // writing to a hash never fails
	_, _ = h.Write(content)
}
