package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/store/database"
	"github.com/ropewalk/ropewalk/core/store/seal"
)

// installation is the stored form of an installed app. It is encrypted if there is a key. No other record contains
// an app's secrets.
type installation struct {
	ID         string            `json:"id,omitempty"`
	Source     core.Source       `json:"source"`
	BundleName string            `json:"bundleName"`
	Version    string            `json:"version"`
	TrustScore int               `json:"trustScore"`
	Manifest   json.RawMessage   `json:"manifest,omitempty"`
	Dir        string            `json:"dir,omitempty"`
	Files      string            `json:"files,omitempty"`
	Sum        string            `json:"sum,omitempty"`
	Env        map[string]string `json:"env,omitempty"`
	Remote     *remote           `json:"remote,omitempty"`
	Running    bool              `json:"running"`
	Patience   time.Duration     `json:"patience,omitempty"`
	Tools      *core.ToolFilter  `json:"tools,omitempty"`

	Signature   *core.BundleSignature `json:"signature,omitempty"`
	Permissions []core.Permission     `json:"permissions"`
}

type remote struct {
	URL       string            `json:"url"`
	Type      string            `json:"type"`
	AuthType  string            `json:"authType"`
	AuthToken string            `json:"authToken,omitempty"`
	AuthName  string            `json:"authName,omitempty"`
	AuthValue string            `json:"authValue,omitempty"`
	Headers   map[string]string `json:"headers,omitempty"`
	Private   bool              `json:"allowPrivate,omitempty"`

	TokenURL     string `json:"tokenUrl,omitempty"`
	Audience     string `json:"audience,omitempty"`
	ClientID     string `json:"clientId,omitempty"`
	ClientSecret string `json:"clientSecret,omitempty"`
	Issuer       string `json:"issuer,omitempty"`
	Scopes       string `json:"scopes,omitempty"`
}

// AddInstallation stores a new app. Its workspace must exist. The error is core.CodeAlreadyInstalled if the workspace
// already has an app with that name, and core.CodeLimitReached if the workspace has reached its quota. If several servers
// add an app under the same name at the same time, only one of them succeeds.
func (s *Store) AddInstallation(ctx context.Context, in core.Installation) error {
	what := fmt.Sprintf("storing app %s of %s", in.Name, in.Workspace)
	record, err := s.sealed(in)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return s.db.Update(ctx, what, func(ctx context.Context, tx *sql.Tx) error {
		if err := s.lock(ctx, tx, "workspaces", in.Workspace); err != nil { // allowApp counts its apps
			return err
		}
		if err := database.Change(ctx, tx, core.AlreadyInstalled(in.Name), `
			INSERT INTO installations (workspace, name, record, installed_at, files) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (workspace, name) DO NOTHING`, in.Workspace, in.Name, record, database.Millis(in.InstalledAt), in.Files); err != nil {
			return err
		}
		if err := s.allowApp(ctx, tx, in.Workspace); err != nil {
			return err
		}
		return s.notifyPeers(ctx, tx, core.ChangeApp, in.Workspace, in.Name)
	})
}

// ChangeInstallation changes the record of an app in one transaction, and returns it. An error from change leaves
// the record unchanged. The error is core.CodeNotFound if there is no such app.
func (s *Store) ChangeInstallation(ctx context.Context, workspace, name string, change func(*core.Installation) error) (core.Installation, error) {
	var in core.Installation
	err := s.db.Update(ctx, "changing app "+name, func(ctx context.Context, tx *sql.Tx) (err error) {
		if in, err = s.findInstallation(ctx, tx, workspace, name, s.db.LockRow()); err != nil {
			return err
		}
		if err := change(&in); err != nil {
			return err
		}
		record, err := s.sealed(in)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `
			UPDATE installations SET record = $3, installed_at = $4, files = $5 WHERE workspace = $1 AND name = $2`,
			workspace, name, record, database.Millis(in.InstalledAt), in.Files); err != nil {
			return err
		}
		return s.notifyPeers(ctx, tx, core.ChangeApp, workspace, name)
	})
	return in, err
}

// DeleteInstallation deletes an installed app, unless the app with that name has a different id. It is not an
// error if there is no such app.
func (s *Store) DeleteInstallation(ctx context.Context, workspace, name, id string) error {
	return s.removeInstallation(ctx, "deleting app "+name, workspace, name, id, func(ctx context.Context, tx *sql.Tx) error {
		return s.deleteApp(ctx, tx, workspace, name)
	})
}

// removeInstallation runs a transaction that removes an installed app, if there is one with that id.
func (s *Store) removeInstallation(ctx context.Context, what, workspace, name, id string, do database.Do) error {
	return s.db.Update(ctx, what, func(ctx context.Context, tx *sql.Tx) error {
		in, err := s.findInstallation(ctx, tx, workspace, name, s.db.LockRow())
		switch {
		case core.CodeOf(err) == core.CodeNotFound || err == nil && in.ID != id:
			return nil
		case err != nil:
			return err
		}
		return do(ctx, tx)
	})
}

// deleteApp deletes the record of an app and everything that belongs to it, except for its pins.
func (s *Store) deleteApp(ctx context.Context, tx *sql.Tx, workspace, name string) error {
	if _, err := tx.ExecContext(ctx, `DELETE FROM installations WHERE workspace = $1 AND name = $2`, workspace, name); err != nil {
		return err
	}
	if err := purgeFiles(ctx, tx); err != nil {
		return err
	}
	if err := s.unlink(ctx, tx, `workspace = $1 AND app = $2`, workspace, name); err != nil {
		return err
	}
	for _, table := range []string{"account_clients", "account_lists", "kept_lists", "standing_approvals"} {
		if _, err := tx.ExecContext(ctx, `DELETE FROM `+table+` WHERE workspace = $1 AND app = $2`, workspace, name); err != nil {
			return err
		}
	}
	if err := s.cancelApprovals(ctx, tx, workspace, name); err != nil {
		return err
	}
	return s.notifyPeers(ctx, tx, core.ChangeApp, workspace, name)
}

// Uninstall removes an app. RestoreInstallation can restore it until the given time. Uninstall does nothing if the app
// is not installed, or if an app with another id has the name.
func (s *Store) Uninstall(ctx context.Context, workspace, name, id string, until time.Time) error {
	return s.removeInstallation(ctx, "uninstalling app "+name, workspace, name, id, func(ctx context.Context, tx *sql.Tx) error {
		return s.setUndo(ctx, tx, workspace, name, until)
	})
}

// RestoreInstallation undoes Uninstall, and returns the app. The error is core.CodeNotFound if it is too late.
func (s *Store) RestoreInstallation(ctx context.Context, workspace, name string) (in core.Installation, err error) {
	err = s.db.Update(ctx, "restoring app "+name, func(ctx context.Context, tx *sql.Tx) error {
		in, err = s.readInstallation(ctx, tx, workspace, name, s.db.LockRow())
		switch {
		case err != nil && core.CodeOf(err) != core.CodeNotFound:
			return err
		case err != nil || !time.Now().Before(in.UndoUntil):
			return core.Errorf(core.CodeNotFound, "no app named %.100q was uninstalled recently", name)
		}
		in.UndoUntil = time.Time{}
		return s.setUndo(ctx, tx, workspace, name, in.UndoUntil)
	})
	return in, err
}

func (s *Store) setUndo(ctx context.Context, tx *sql.Tx, workspace, name string, until time.Time) error {
	if _, err := tx.ExecContext(ctx, `UPDATE installations SET undo_until = $3 WHERE workspace = $1 AND name = $2`, workspace, name, optionalMillis(until)); err != nil {
		return err
	}
	return s.notifyPeers(ctx, tx, core.ChangeApp, workspace, name)
}

// PurgeUninstalled deletes the uninstalled apps that can no longer be restored, with everything that belongs to them.
// If name is not "", it deletes only the uninstalled app with that name, immediately.
func (s *Store) PurgeUninstalled(ctx context.Context, workspace, name string) error {
	type key struct{ workspace, name string }
	return s.db.Update(ctx, "deleting uninstalled apps", func(ctx context.Context, tx *sql.Tx) error {
		due, err := database.Collect(ctx, tx, `SELECT c.workspace, c.name FROM installations c
			WHERE c.undo_until > 0 AND (c.undo_until <= $1 AND $3 = '' OR c.workspace = $2 AND c.name = $3) `+s.db.LockRow(),
			[]any{database.Millis(time.Now()), workspace, name}, func(row database.Row) (k key, err error) {
				return k, row.Scan(&k.workspace, &k.name)
			})
		for _, k := range due {
			err = errors.Join(err, s.deleteApp(ctx, tx, k.workspace, k.name))
		}
		return err
	})
}

// Installation returns an installed app, or core.CodeNotFound.
func (s *Store) Installation(ctx context.Context, workspace, name string) (core.Installation, error) {
	var in core.Installation
	err := s.db.Read(ctx, fmt.Sprintf("reading app %s of %s", name, workspace), func(ctx context.Context, q database.Querier) (err error) {
		in, err = s.findInstallation(ctx, q, workspace, name, "")
		return err
	})
	return in, err
}

// findInstallation reads an installed app. lock is appended to the SELECT: s.db.LockRow() in a transaction that will
// change the app, and otherwise "".
func (s *Store) findInstallation(ctx context.Context, q database.Querier, workspace, name, lock string) (core.Installation, error) {
	in, err := s.readInstallation(ctx, q, workspace, name, lock)
	if err == nil && !in.UndoUntil.IsZero() {
		return core.Installation{}, noApp(name)
	}
	return in, err
}

// readInstallation is like findInstallation, but also finds an uninstalled app that has not been purged.
func (s *Store) readInstallation(ctx context.Context, q database.Querier, workspace, name, lock string) (core.Installation, error) {
	in, err := s.scanInstallation(q.QueryRowContext(ctx, selectInstallations+` WHERE c.workspace = $1 AND c.name = $2 `+lock, workspace, name))
	return in, database.Missing(err, noApp(name))
}

func noApp(name string) error { return core.Errorf(core.CodeNotFound, "no app named %.100q", name) }

// Installations returns the installed apps of all workspaces, sorted by workspace and name.
func (s *Store) Installations(ctx context.Context) ([]core.Installation, error) {
	return s.installations(ctx, ` WHERE c.undo_until = 0`)
}

// Uninstalled returns the uninstalled apps that PurgeUninstalled has not deleted yet.
func (s *Store) Uninstalled(ctx context.Context) ([]core.Installation, error) {
	return s.installations(ctx, ` WHERE c.undo_until > 0`)
}

func (s *Store) installations(ctx context.Context, condition string) ([]core.Installation, error) {
	return database.List(ctx, s.db, "reading the apps", selectInstallations+condition+` ORDER BY c.workspace, c.name`, nil, s.scanInstallation)
}

const selectInstallations = `SELECT c.workspace, c.name, c.record, c.installed_at, c.undo_until FROM installations c`

func (s *Store) scanInstallation(row database.Row) (core.Installation, error) {
	var workspace, name, stored string
	var installedAt, undoUntil int64
	if err := row.Scan(&workspace, &name, &stored, &installedAt, &undoUntil); err != nil {
		return core.Installation{}, err
	}
	plain, err := s.keys.Load().Open(stored, seal.AboutApp(workspace, name))
	var record installation
	if err == nil {
		err = json.Unmarshal(plain, &record)
	}
	if err != nil {
		return core.Installation{}, fmt.Errorf("the record of app %s of %s: %w", name, workspace, err)
	}
	in := record.installation(workspace, name, database.FromMillis(installedAt))
	in.UndoUntil = optionalTime(undoUntil)
	return in, nil
}

// sealed returns the stored record of an app, which is encrypted if there is a key.
func (s *Store) sealed(in core.Installation) (string, error) {
	plain, err := json.Marshal(toRecord(in))
	if err != nil {
		return "", err
	}
	return s.keys.Load().Seal(plain, seal.AboutApp(in.Workspace, in.Name)), nil
}

func toRecord(in core.Installation) installation {
	record := installation{
		ID: in.ID, Files: in.Files, Sum: in.Sum, Source: in.Source, BundleName: in.BundleName, Version: in.Version, TrustScore: in.TrustScore,
		Manifest: in.Manifest, Dir: in.Dir, Env: core.RevealAll(in.Env), Running: in.Running, Patience: in.Patience, Tools: in.Tools, Signature: in.Signature, Permissions: in.Permissions,
	}
	if r := in.Remote; r != nil {
		record.Remote = &remote{
			URL: r.URL, Type: r.Type, AuthType: r.Auth.Type, AuthToken: r.Auth.Token.Reveal(),
			AuthName: r.Auth.Name, AuthValue: r.Auth.Value.Reveal(), Headers: core.RevealAll(r.Headers),
			Private: r.AllowPrivate, ClientID: r.Auth.ClientID, ClientSecret: r.Auth.ClientSecret.Reveal(), Issuer: r.Auth.Issuer, Scopes: r.Auth.Scopes,
			TokenURL: r.Auth.TokenURL, Audience: r.Auth.Audience,
		}
	}
	return record
}

func (r installation) installation(workspace, name string, at time.Time) core.Installation {
	in := core.Installation{
		ID: r.ID, Files: r.Files, Sum: r.Sum, Workspace: workspace, Name: name, Source: r.Source, BundleName: r.BundleName, Version: r.Version,
		TrustScore: r.TrustScore, Manifest: r.Manifest, Dir: r.Dir, Env: core.Secrets(r.Env), Running: r.Running, Patience: r.Patience, Tools: r.Tools, InstalledAt: at, Signature: r.Signature, Permissions: r.Permissions,
	}
	if m := r.Remote; m != nil {
		in.Remote = &core.Remote{
			URL: m.URL, Type: m.Type, Headers: core.Secrets(m.Headers), AllowPrivate: m.Private,
			Auth: core.RemoteAuth{Type: m.AuthType, Token: core.Secret(m.AuthToken), Name: m.AuthName, Value: core.Secret(m.AuthValue), ClientID: m.ClientID, ClientSecret: core.Secret(m.ClientSecret), Issuer: m.Issuer, Scopes: m.Scopes, TokenURL: m.TokenURL, Audience: m.Audience},
		}
	}
	return in
}

// KeptLists returns the stored lists of an app. sum is the hash of everything that determines them. The error is
// core.CodeNotFound if none are stored, or they were stored with a different hash.
func (s *Store) KeptLists(ctx context.Context, workspace, app, sum string) (record string, err error) {
	err = s.db.Get(ctx, "reading the lists of app "+app, `SELECT record FROM kept_lists WHERE workspace = $1 AND app = $2 AND sum = $3`, []any{workspace, app, sum}, &record)
	return record, database.Missing(err, core.Errorf(core.CodeNotFound, "the lists of app %s are not stored", app))
}

// PutKeptLists stores the lists of an app, and replaces earlier ones. They are deleted when the app is uninstalled.
func (s *Store) PutKeptLists(ctx context.Context, workspace, app, sum, record string) error {
	return s.db.Exec(ctx, "storing the lists of app "+app, `INSERT INTO kept_lists (workspace, app, sum, record) VALUES ($1, $2, $3, $4)
		ON CONFLICT (workspace, app) DO UPDATE SET sum = excluded.sum, record = excluded.record`, workspace, app, sum, record)
}
