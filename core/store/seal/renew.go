package seal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/ropewalk/ropewalk/core/store/database"
)

// AboutApp returns the place of an app's record, for Seal and Open.
func AboutApp(workspace, name string) string { return "app\x00" + workspace + "\x00" + name }

// AboutLogin returns the place of a pending browser login's record, for Seal and Open.
func AboutLogin(state string) string { return "login\x00" + state }

// AboutAccount returns the place of a linked or unlinked account's record, for Seal and Open.
func AboutAccount(id string) string { return "account\x00" + id }

// AboutClient returns the place of a registered OAuth client's record, for Seal and Open.
func AboutClient(workspace, app, issuer, redirectURI string) string {
	return strings.Join([]string{"client", workspace, app, issuer, redirectURI}, "\x00")
}

// table describes a table with long-lived sealed records, and the key columns of its rows. Pending logins are not among
// them, because they soon expire.
type table struct {
	name  string
	key   []string
	about func(key []string) string
	what  func(key []string) string // for messages
}

func tables() []table {
	ofAccount := func(key []string) string { return AboutAccount(key[0]) }
	account := func(key []string) string { return "account " + key[0] }
	return []table{
		{
			"installations", []string{"workspace", "name"}, func(key []string) string { return AboutApp(key[0], key[1]) },
			func(key []string) string { return "app " + key[1] + " of " + key[0] },
		},
		{"accounts", []string{"id"}, ofAccount, account},
		{"account_revocations", []string{"id"}, ofAccount, account},
		{
			"account_clients", []string{"workspace", "app", "issuer", "redirect_uri"}, func(key []string) string { return AboutClient(key[0], key[1], key[2], key[3]) },
			func(key []string) string { return "client for app " + key[1] + " of " + key[0] },
		},
	}
}

// stored is a record in the database.
type stored struct {
	table
	values []string // the values of the key columns
	record string
}

func (s stored) place() string { return s.about(s.values) }

// Check decrypts every record except pending logins, and returns the error for the first that cannot be decrypted.
func Check(ctx context.Context, q database.Querier, k *Keys) error {
	_, err := outdated(ctx, q, k)
	return err
}

// Renew encrypts the records that are stored in plain text, or with a key other than the first, and returns how many there were.
// It changes nothing if there is a record that it cannot decrypt. Call Rewrite afterwards.
func Renew(ctx context.Context, db *database.Database, k *Keys) (n int, err error) {
	var todo []stored
	err = db.Read(ctx, "reading encrypted records", func(ctx context.Context, q database.Querier) (err error) {
		todo, err = outdated(ctx, q, k)
		return err
	})
	if err != nil {
		return 0, err
	}
	if len(todo) > 0 { // Rewrite sets it again
		if err := db.Exec(ctx, "recording that records are being encrypted", `DELETE FROM settings WHERE name = $1`, RewrittenSetting); err != nil {
			return 0, err
		}
	}
	for _, s := range todo {
		plain, err := k.Open(s.record, s.place())
		if err != nil {
			return n, err // unexpected: outdated has just decrypted it
		}
		err = db.Update(ctx, "encrypting "+s.what(s.values), func(ctx context.Context, tx *sql.Tx) error {
			// If another server has changed the record in the meantime, that server has encrypted it.
			args := []any{k.Seal(plain, s.place()), s.record}
			where := "record = $2"
			for i, column := range s.key {
				args = append(args, s.values[i])
				where += fmt.Sprintf(" AND %s = $%d", column, len(args))
			}
			_, err := tx.ExecContext(ctx, `UPDATE `+s.name+` SET record = $1 WHERE `+where, args...)
			return err
		})
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// RewrittenSetting is the name of the setting with the ID of the key for which the database was last rewritten.
const RewrittenSetting = "seal.rewritten"

// Rewrite removes the earlier forms of records from the files of the database, after they were encrypted with the
// current key. It does nothing if that has already been done. After a crash, the next start does it.
func Rewrite(ctx context.Context, db *database.Database, k *Keys) error {
	if k == nil {
		return nil
	}
	var last string
	err := database.Missing(db.Get(ctx, "reading setting "+RewrittenSetting, `SELECT value FROM settings WHERE name = $1`, []any{RewrittenSetting}, &last), nil)
	if err != nil || last == k.ID() {
		return err
	}
	for _, t := range tables() {
		if err := db.Rewrite(ctx, t.name); err != nil {
			return err
		}
		if db.Kind() == database.SQLite { // a file is rewritten as a whole
			break
		}
	}
	return db.Exec(ctx, "storing setting "+RewrittenSetting, `INSERT INTO settings (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value`, RewrittenSetting, k.ID())
}

// outdated returns the records that are not in the form that Seal would write now.
func outdated(ctx context.Context, q database.Querier, k *Keys) (todo []stored, err error) {
	for _, t := range tables() {
		of, err := t.outdated(ctx, q, k)
		if err != nil {
			return nil, err
		}
		todo = append(todo, of...)
	}
	return todo, nil
}

func (t table) outdated(ctx context.Context, q database.Querier, k *Keys) (todo []stored, err error) {
	columns := strings.Join(t.key, ", ")
	rows, err := q.QueryContext(ctx, `SELECT record, `+columns+` FROM `+t.name+` ORDER BY `+columns)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		s := stored{table: t, values: make([]string, len(t.key))}
		into := []any{&s.record}
		for i := range s.values {
			into = append(into, &s.values[i])
		}
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		if _, err := k.Open(s.record, s.place()); err != nil {
			return nil, fmt.Errorf("the record of %s cannot be read: %w", s.what(s.values), err)
		}
		if !k.current(s.record) {
			todo = append(todo, s)
		}
	}
	return todo, rows.Err()
}
