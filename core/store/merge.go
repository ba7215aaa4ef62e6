package store

import (
	"context"
	"database/sql"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/store/database"
)

// MergeUsers moves everything that belongs to one user, including identities, to a second user and removes the first.
// Their conversations in a workspace become one list. The first user's personal workspace becomes an ordinary one, with
// the second user as an admin. If both linked an account under the same name, the first user's account is unlinked.
// Organization roles do not carry over. Errors: core.CodeNotFound for an unknown user, core.CodeInvalidInput if both
// are the same, core.CodeForbidden for the instance's owner.
func (s *Store) MergeUsers(ctx context.Context, from, into string) error {
	owner := core.Owner().User.ID
	switch {
	case from == into:
		return core.Errorf(core.CodeInvalidInput, "from must not be the same user as the one to merge into")
	case from == owner || into == owner:
		return core.Errorf(core.CodeForbidden, "the instance's owner cannot be merged with a user")
	}
	return s.changeMembers(ctx, "merging users", "", func(ctx context.Context, tx *sql.Tx) ([]string, error) {
		for _, id := range []string{from, into} {
			if _, err := findUser(ctx, tx, id); err != nil {
				return nil, err
			}
		}
		if err := s.mergeCollections(ctx, tx, from, into); err != nil {
			return nil, err
		}
		if err := s.unlink(ctx, tx, `owner = $1 AND EXISTS (SELECT 1 FROM accounts o WHERE o.owner = $2
			AND o.workspace = accounts.workspace AND o.app = accounts.app AND o.name = accounts.name)`, from, into); err != nil {
			return nil, err
		}
		for _, statement := range mergeStatements() {
			if _, err := tx.ExecContext(ctx, statement, from, into); err != nil {
				return nil, err
			}
		}
		_, err := tx.ExecContext(ctx, `DELETE FROM users WHERE id = $1`, from)
		return []string{from, into}, err
	})
}

// mergeStatements returns the statements that move everything that belongs to the user $1 to the user $2.
func mergeStatements() []string {
	return []string{ // ordered so that no constraint is violated
		`UPDATE accounts SET is_default = 0 WHERE owner = $1 AND EXISTS (SELECT 1 FROM accounts o WHERE o.owner = $2
		AND o.workspace = accounts.workspace AND o.app = accounts.app AND o.is_default <> 0)`,
		`UPDATE accounts SET owner = $2 WHERE owner = $1`,
		`DELETE FROM members WHERE user_id = $1 AND by_group = 1 AND $2 <> ''`, // the next token restores the roles from groups
		`UPDATE members SET role = 'admin', by_group = 0 WHERE user_id = $2 AND workspace IN (SELECT workspace FROM members WHERE user_id = $1 AND role = 'admin')`,
		`UPDATE members SET user_id = $2 WHERE user_id = $1 AND workspace NOT IN (SELECT workspace FROM members WHERE user_id = $2)`,
		`UPDATE workspaces SET personal_of = NULL WHERE personal_of = $1 AND $2 <> ''`,
		`UPDATE api_keys SET user_id = $2 WHERE user_id = $1`,
		`UPDATE cookies SET issuer = (SELECT issuer FROM users WHERE id = $1), subject = (SELECT subject FROM users WHERE id = $1) WHERE user_id = $1 AND issuer = '' AND $2 <> ''`,
		`UPDATE cookies SET user_id = $2 WHERE user_id = $1`,
		`UPDATE usage_records SET user_id = $2 WHERE user_id = $1`,
		`UPDATE tasks SET user_id = $2 WHERE user_id = $1`,
		`UPDATE kept_results SET user_id = $2 WHERE user_id = $1`,
		`UPDATE identities SET user_id = $2 WHERE user_id = $1`,
		`INSERT INTO identities (issuer, subject, user_id, linked_at) SELECT issuer, subject, $2, created_at FROM users WHERE id = $1`,
	}
}

// mergeCollections moves the conversations of one user into the collections of another.
func (s *Store) mergeCollections(ctx context.Context, tx *sql.Tx, from, into string) error {
	type collection struct {
		id        int64
		workspace string
	}
	all, err := database.Collect(ctx, tx, `SELECT id, workspace FROM collections WHERE owner = $1 ORDER BY id`, []any{from},
		func(row database.Row) (c collection, err error) {
			err = row.Scan(&c.id, &c.workspace)
			return c, err
		})
	for _, c := range all {
		target, err := ensureCollection(ctx, tx, c.workspace, into)
		if err != nil {
			return err
		}
		if err := s.mergeCollection(ctx, tx, c.id, target); err != nil {
			return err
		}
	}
	return err
}

func (s *Store) mergeCollection(ctx context.Context, tx *sql.Tx, from, into int64) error {
	var last int64
	if err := tx.QueryRowContext(ctx, `SELECT last_number FROM collections WHERE id = $1`, into).Scan(&last); err != nil {
		return err
	}
	shift, err := s.index.Move(ctx, tx, from, into, last)
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, `UPDATE conversations SET collection = $2, number = number + $3 WHERE collection = $1`, from, into, shift); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, `UPDATE collections SET last_number = $3 + (SELECT f.last_number FROM collections f WHERE f.id = $1),
		conversations = conversations + (SELECT f.conversations FROM collections f WHERE f.id = $1) WHERE id = $2`, from, into, shift); err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `DELETE FROM collections WHERE id = $1`, from)
	return err
}
