package store

import (
	"context"
	"database/sql"
	"slices"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/store/database"
)

// A user's first identity is in the user's own row. Any others are in the identities table.
const (
	// userOf selects the id of the user with the issuer $1 and the subject $2, or NULL if there is none.
	userOf = `COALESCE((SELECT i.user_id FROM identities i WHERE i.issuer = $1 AND i.subject = $2),
		(SELECT f.id FROM users f WHERE f.issuer = $1 AND f.subject = $2))`

	// issuersOf selects the issuers that recognize a user u, one per line.
	issuersOf = `u.issuer || COALESCE((SELECT string_agg('
' || i.issuer, '') FROM identities i WHERE i.user_id = u.id), '')`
)

// firstIdentity returns the first identity of the user that an identity belongs to. If no user has the identity, it links
// the identity to a matching user. If none matches, the user is new, and the identity itself is returned.
func (s *Store) firstIdentity(ctx context.Context, tx *sql.Tx, id core.Identity, sameAs []string) (first core.Subject, linked bool, err error) {
	var user sql.NullString
	if err := tx.QueryRowContext(ctx, `SELECT `+userOf, id.Issuer, id.Subject).Scan(&user); err != nil {
		return first, false, err
	}
	if !user.Valid {
		if user.String, err = s.match(ctx, tx, id, sameAs); err != nil || user.String == "" {
			return core.Subject{Issuer: id.Issuer, Subject: id.Subject}, false, err
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO identities (issuer, subject, user_id, linked_at) VALUES ($1, $2, $3, $4)
			ON CONFLICT (issuer, subject) DO NOTHING`, id.Issuer, id.Subject, user.String, database.Millis(time.Now())); err != nil {
			return first, false, err
		}
		s.log.Info("identity linked to the user with the same verified email", "user", user.String, "email", id.User.Email, "issuer", id.Issuer)
		linked = true
	}
	err = tx.QueryRowContext(ctx, `SELECT issuer, subject FROM users WHERE id = $1`, user.String).Scan(&first.Issuer, &first.Subject)
	return first, linked, err
}

// match returns the id of the user that has an identity's email at an issuer in sameAs, or "" unless there is exactly
// one. A user whom the identity's own issuer knows under another subject is a different person.
func (s *Store) match(ctx context.Context, tx *sql.Tx, id core.Identity, sameAs []string) (string, error) {
	if len(sameAs) == 0 || id.User.Email == "" {
		return "", nil
	}
	all, err := readUsers(ctx, tx)
	if err != nil {
		return "", err
	}
	found := slices.DeleteFunc(core.UsersWithEmail(all, id.User.Email, sameAs), func(u core.KnownUser) bool { return u.KnownTo(id.Issuer) })
	if len(found) == 1 {
		return found[0].ID, nil
	}
	if len(found) > 1 {
		s.log.Warn("several users have the email of someone who logged in for the first time, so a new user was created; `ropewalk user merge` merges them",
			"users", len(found), "email", id.User.Email, "issuer", id.Issuer)
	}
	return "", nil
}

// Users returns all of the server's users, sorted by name.
func (s *Store) Users(ctx context.Context) (all []core.KnownUser, err error) {
	err = s.db.View(ctx, "reading the users", func(ctx context.Context, tx *sql.Tx) (err error) {
		all, err = readUsers(ctx, tx)
		return err
	})
	return all, err
}

func readUsers(ctx context.Context, tx *sql.Tx) ([]core.KnownUser, error) {
	all, err := database.Collect(ctx, tx, `SELECT `+userColumns+`, u.issuer, u.subject, (SELECT COUNT(*) FROM api_keys k WHERE k.user_id = u.id)
		FROM users u ORDER BY u.display_name, u.email, u.id`, nil,
		func(row database.Row) (u core.KnownUser, err error) {
			u.Identities = make([]core.Subject, 1)
			err = row.Scan(append(userFields(&u.User), &u.Identities[0].Issuer, &u.Identities[0].Subject, &u.APIKeys)...)
			return u, err
		})
	if err != nil {
		return nil, err
	}
	at := make(map[string]*core.KnownUser, len(all))
	for i := range all {
		at[all[i].ID] = &all[i]
	}
	_, err = database.Collect(ctx, tx, `SELECT user_id, issuer, subject FROM identities ORDER BY linked_at, issuer, subject`, nil,
		func(row database.Row) (more core.Subject, err error) {
			var user string
			err = row.Scan(&user, &more.Issuer, &more.Subject)
			if u := at[user]; u != nil {
				u.Identities = append(u.Identities, more)
			}
			return more, err
		})
	return all, err
}
