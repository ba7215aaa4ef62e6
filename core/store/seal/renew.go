package seal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/ropewalk/ropewalk/core/store/database"
)

// AboutApp is the place of the record of an app, for Seal and Open.
func AboutApp(workspace, name string) string { return "app\x00" + workspace + "\x00" + name }

// AboutLogin is the place of the record of a browser login under way, for Seal and Open.
func AboutLogin(state string) string { return "login\x00" + state }

// stored is the record of an app as it is in the database.
type stored struct{ workspace, name, record string }

// Check decrypts the record of every app, and returns what is wrong with the first that cannot be
// decrypted.
func Check(ctx context.Context, q database.Querier, k *Keys) error {
	_, err := outdated(ctx, q, k)
	return err
}

// Renew encrypts the records of apps that are stored in plain, or with another key than the first, and
// returns how many. It changes nothing when there is a record that it cannot decrypt. Rewrite completes it.
func Renew(ctx context.Context, db *database.Database, k *Keys) (n int, err error) {
	var todo []stored
	err = db.Read(ctx, func(ctx context.Context, q database.Querier) error {
		todo, err = outdated(ctx, q, k)
		return err
	})
	if err != nil {
		return 0, err
	}
	if len(todo) > 0 { // until the files are rewritten again
		if _, err := db.Exec(ctx, `DELETE FROM settings WHERE name = $1`, RewrittenSetting); err != nil {
			return 0, err
		}
	}
	for _, s := range todo {
		plain, err := k.Open(s.record, AboutApp(s.workspace, s.name))
		if err != nil {
			return n, err // outdated has just decrypted it
		}
		err = db.Update(ctx, "encrypting app "+s.name, func(ctx context.Context, tx *sql.Tx) error {
			// A record that another server has changed meanwhile was encrypted by that.
			_, err := tx.ExecContext(ctx, `UPDATE installations SET record = $1 WHERE workspace = $2 AND name = $3 AND record = $4`,
				k.Seal(plain, AboutApp(s.workspace, s.name)), s.workspace, s.name, s.record)
			return err
		})
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// RewrittenSetting is the name of the setting with the key for which the database was last rewritten.
const RewrittenSetting = "seal.rewritten"

// Rewrite removes from the files of the database what was there before the records were encrypted with the
// present key, unless that was done already. What a crash interrupts is done at the next start.
func Rewrite(ctx context.Context, db *database.Database, k *Keys) error {
	if k == nil {
		return nil
	}
	var last string
	err := db.Get(ctx, `SELECT value FROM settings WHERE name = $1`, []any{RewrittenSetting}, &last)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	if last == k.ID() {
		return nil
	}
	if err := db.Rewrite(ctx, "installations"); err != nil {
		return err
	}
	_, err = db.Exec(ctx, `INSERT INTO settings (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value`, RewrittenSetting, k.ID())
	return err
}

// outdated returns the records that Seal would write in another way.
func outdated(ctx context.Context, q database.Querier, k *Keys) (todo []stored, err error) {
	rows, err := q.QueryContext(ctx, `SELECT workspace, name, record FROM installations ORDER BY workspace, name`)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var s stored
		if err := rows.Scan(&s.workspace, &s.name, &s.record); err != nil {
			return nil, err
		}
		if _, err := k.Open(s.record, AboutApp(s.workspace, s.name)); err != nil {
			return nil, fmt.Errorf("the record of app %s of %s cannot be read: %w", s.name, s.workspace, err)
		}
		if !k.current(s.record) {
			todo = append(todo, s)
		}
	}
	return todo, rows.Err()
}
