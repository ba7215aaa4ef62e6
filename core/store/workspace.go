package store

import (
	"context"
	"database/sql"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/store/database"
)

// EnsureDefaultWorkspace creates the default workspace and its first admin, the instance's owner, unless
// they exist. It returns the workspace with the owner's role. Open calls it.
func (s *Store) EnsureDefaultWorkspace(ctx context.Context) (core.Workspace, error) {
	owner := core.Owner()
	w := core.Workspace{ID: core.DefaultWorkspaceID, Name: "Default", Role: core.RoleAdmin}
	err := s.db.Update(ctx, "creating the default workspace", func(ctx context.Context, tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `
			INSERT INTO workspaces (id, name, created_at) VALUES ($1, $2, $3) ON CONFLICT (id) DO NOTHING`,
			w.ID, w.Name, database.Millis(time.Now())); err != nil {
			return err
		}
		if _, err := upsertUser(ctx, tx, core.Subject{Issuer: owner.Issuer, Subject: owner.Subject}, owner.User, false); err != nil {
			return err
		}
		if err := putMember(ctx, tx, w.ID, owner.User.ID, core.RoleAdmin); err != nil {
			return err
		}
		return tx.QueryRowContext(ctx, `SELECT name FROM workspaces WHERE id = $1`, w.ID).Scan(&w.Name)
	})
	return w, err
}

// Workspaces returns a user's workspaces with the user's role in each: the default workspace
// first, then the personal one, then the others sorted by name. Owners and admins of the organization are
// admins of the default workspace even if they are not listed as its members.
func (s *Store) Workspaces(ctx context.Context, u core.User) ([]core.Workspace, error) {
	return database.List(ctx, s.db, "reading a user's workspaces", `
		SELECT w.id, w.name, CASE WHEN w.id = $1 AND $2 THEN 'admin' ELSE m.role END
		FROM workspaces w LEFT JOIN members m ON m.workspace = w.id AND m.user_id = $3
		WHERE m.user_id IS NOT NULL OR (w.id = $1 AND $2)
		ORDER BY CASE WHEN w.id = $1 THEN 0 WHEN w.personal_of = $3 THEN 1 ELSE 2 END, w.name, w.id`,
		[]any{core.DefaultWorkspaceID, u.OrgRole.Admin(), u.ID}, func(row database.Row) (w core.Workspace, err error) {
			err = row.Scan(&w.ID, &w.Name, &w.Role)
			return w, err
		})
}

// CreateWorkspace creates a workspace with a first admin. The error is core.CodeNotFound if there is no such
// user, and core.CodeInvalidInput for an invalid name.
func (s *Store) CreateWorkspace(ctx context.Context, name, adminID string) (core.Workspace, error) {
	w := core.Workspace{ID: newID("ws_"), Name: strings.TrimSpace(clean(name)), Role: core.RoleAdmin}
	if err := checkName(w.Name); err != nil {
		return core.Workspace{}, err
	}
	err := s.changeMembers(ctx, "creating a workspace", w.ID, of(adminID, func(ctx context.Context, tx *sql.Tx) error {
		if _, err := findUser(ctx, tx, adminID); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO workspaces (id, name, created_at) VALUES ($1, $2, $3)`, w.ID, w.Name, database.Millis(time.Now())); err != nil {
			return err
		}
		return putMember(ctx, tx, w.ID, adminID, w.Role)
	}))
	if err != nil {
		return core.Workspace{}, err
	}
	return w, nil
}

// RenameWorkspace renames a workspace. The error is core.CodeNotFound if there is no workspace with this id, and
// core.CodeInvalidInput for an invalid name.
func (s *Store) RenameWorkspace(ctx context.Context, id, name string) error {
	name = strings.TrimSpace(clean(name))
	if err := checkName(name); err != nil {
		return err
	}
	return s.changeMembers(ctx, "renaming workspace "+id, id, of("", func(ctx context.Context, tx *sql.Tx) error {
		if _, err := personalOf(ctx, tx, id); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `UPDATE workspaces SET name = $1 WHERE id = $2`, name, id)
		return err
	}))
}

// WorkspaceInstructions returns the instructions that the admins of a workspace give to every model there, or "" if
// there are none. The error is core.CodeNotFound if there is no workspace with this id.
func (s *Store) WorkspaceInstructions(ctx context.Context, id string) (string, error) {
	var text string
	err := s.db.Get(ctx, "reading the instructions of workspace "+id, `SELECT instructions FROM workspaces WHERE id = $1`, []any{id}, &text)
	return text, database.Missing(err, core.Errorf(core.CodeNotFound, "there is no workspace %s", id))
}

// SetWorkspaceInstructions replaces the instructions of a workspace. The error is core.CodeNotFound if there is no
// workspace with this id.
func (s *Store) SetWorkspaceInstructions(ctx context.Context, id, text string) error {
	return s.db.Update(ctx, "storing the instructions of workspace "+id, func(ctx context.Context, tx *sql.Tx) error {
		return database.Change(ctx, tx, core.Errorf(core.CodeNotFound, "there is no workspace %s", id), `UPDATE workspaces SET instructions = $1 WHERE id = $2`, clean(text), id)
	})
}

// DeleteWorkspace deletes a workspace with its members, conversations and usage. The error is core.CodeNotFound
// if there is no workspace with this id, and core.CodeForbidden for the default workspace, a personal workspace,
// and a workspace with installed apps, which must be uninstalled first.
func (s *Store) DeleteWorkspace(ctx context.Context, id string) error {
	return s.changeMembers(ctx, "deleting workspace "+id, id, of("", func(ctx context.Context, tx *sql.Tx) error {
		owner, err := personalOf(ctx, tx, id)
		switch {
		case err != nil:
			return err
		case id == core.DefaultWorkspaceID:
			return core.Errorf(core.CodeForbidden, "the default workspace cannot be deleted")
		case owner != "":
			return core.Errorf(core.CodeForbidden, "workspace %s is personal; it is deleted with its user", id)
		}
		return s.deleteWorkspace(ctx, tx, id)
	}))
}

func (s *Store) deleteWorkspace(ctx context.Context, tx *sql.Tx, id string) error {
	var apps int
	if err := tx.QueryRowContext(ctx, `SELECT COUNT(*) FROM installations WHERE workspace = $1 AND undo_until = 0`, id).Scan(&apps); err != nil {
		return err
	}
	if apps > 0 {
		return core.Errorf(core.CodeForbidden, "%d apps are installed in workspace %s; uninstall them first", apps, id)
	}
	if err := s.unlink(ctx, tx, `workspace = $1`, id); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, `DELETE FROM installations WHERE workspace = $1`, id); err != nil { // apps that were uninstalled but could still be restored
		return err
	}
	_, err := tx.ExecContext(ctx, `DELETE FROM workspaces WHERE id = $1`, id)
	return err
}

// AllWorkspaces returns every workspace: the default one first, the others sorted by name.
func (s *Store) AllWorkspaces(ctx context.Context) ([]core.WorkspaceInfo, error) {
	return database.List(ctx, s.db, "reading the workspaces", `
		SELECT w.id, w.name, COALESCE(w.personal_of, ''), w.created_at, (SELECT COUNT(*) FROM members m WHERE m.workspace = w.id)
		FROM workspaces w ORDER BY CASE WHEN w.id = $1 THEN 0 ELSE 1 END, w.name, w.id`, []any{core.DefaultWorkspaceID},
		func(row database.Row) (w core.WorkspaceInfo, err error) {
			var created int64
			err = row.Scan(&w.ID, &w.Name, &w.PersonalOf, &created, &w.Members)
			w.CreatedAt = database.FromMillis(created)
			return w, err
		})
}

const maxName = 100 // characters of a workspace's name

func checkName(name string) error {
	if n := utf8.RuneCountInString(name); n == 0 || n > maxName {
		return core.Errorf(core.CodeInvalidInput, "name must have between 1 and %d characters", maxName)
	}
	return nil
}
