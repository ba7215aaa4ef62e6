package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/store/database"
	"github.com/ropewalk/ropewalk/core/store/seal"
)

// installation is the stored form of an installed app, which is encrypted if there is a key. It is the only place
// where the secrets of an app are written out.
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

	ClientID     string `json:"clientId,omitempty"`
	ClientSecret string `json:"clientSecret,omitempty"`
	Scopes       string `json:"scopes,omitempty"`
}

// AddInstallation stores a new app. Its workspace must exist. The error is core.CodeAlreadyInstalled if the
// workspace already has an app of that name. If several servers add one at the same time, only one succeeds.
func (s *Store) AddInstallation(ctx context.Context, in core.Installation) error {
	what := fmt.Sprintf("storing app %s of %s", in.Name, in.Workspace)
	record, err := s.sealed(in)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return s.db.Update(ctx, what, func(ctx context.Context, tx *sql.Tx) error {
		result, err := tx.ExecContext(ctx, `
			INSERT INTO installations (workspace, name, record, installed_at, files) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (workspace, name) DO NOTHING`, in.Workspace, in.Name, record, database.Millis(in.InstalledAt), in.Files)
		if err != nil {
			return err
		}
		if n, err := result.RowsAffected(); err != nil || n == 0 {
			return errors.Join(err, core.AlreadyInstalled(in.Name))
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

// DeleteInstallation deletes an installed app, unless the app of that name has a different id. It is not an
// error if there is no such app.
func (s *Store) DeleteInstallation(ctx context.Context, workspace, name, id string) error {
	return s.db.Update(ctx, "deleting app "+name, func(ctx context.Context, tx *sql.Tx) error {
		in, err := s.findInstallation(ctx, tx, workspace, name, s.db.LockRow())
		switch {
		case core.CodeOf(err) == core.CodeNotFound || err == nil && in.ID != id:
			return nil
		case err != nil:
			return err
		}
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
		return s.notifyPeers(ctx, tx, core.ChangeApp, workspace, name)
	})
}

// Installation returns an installed app, or core.CodeNotFound.
func (s *Store) Installation(ctx context.Context, workspace, name string) (core.Installation, error) {
	var in core.Installation
	err := s.db.Read(ctx, func(ctx context.Context, q database.Querier) (err error) {
		in, err = s.findInstallation(ctx, q, workspace, name, "")
		return err
	})
	if err != nil {
		err = fmt.Errorf("reading app %s of %s: %w", name, workspace, err)
	}
	return in, err
}

// findInstallation reads an app. lock is appended to the SELECT in a transaction that will change the app.
func (s *Store) findInstallation(ctx context.Context, q database.Querier, workspace, name, lock string) (core.Installation, error) {
	var text string
	var installedAt int64
	err := q.QueryRowContext(ctx, `SELECT c.record, c.installed_at FROM installations c WHERE c.workspace = $1 AND c.name = $2 `+lock, workspace, name).
		Scan(&text, &installedAt)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return core.Installation{}, core.Errorf(core.CodeNotFound, "no app named %.100q", name)
	case err != nil:
		return core.Installation{}, err
	}
	return s.opened(text, workspace, name, database.FromMillis(installedAt))
}

// Installations returns the installed apps of all workspaces, sorted by workspace and name.
func (s *Store) Installations(ctx context.Context) ([]core.Installation, error) {
	var all []core.Installation
	err := s.db.Select(ctx, `SELECT workspace, name, record, installed_at FROM installations ORDER BY workspace, name`, nil, func(scan func(...any) error) error {
		var workspace, name, text string
		var installedAt int64
		if err := scan(&workspace, &name, &text, &installedAt); err != nil {
			return err
		}
		in, err := s.opened(text, workspace, name, database.FromMillis(installedAt))
		if err != nil {
			return fmt.Errorf("app %s of %s: %w", name, workspace, err)
		}
		all = append(all, in)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the installed apps: %w", err)
	}
	return all, nil
}

// sealed returns the stored record of an app, which is encrypted if there is a key.
func (s *Store) sealed(in core.Installation) (string, error) {
	plain, err := json.Marshal(toRecord(in))
	if err != nil {
		return "", err
	}
	return s.keys.Load().Seal(plain, seal.AboutApp(in.Workspace, in.Name)), nil
}

// opened returns the app in a stored record.
func (s *Store) opened(stored, workspace, name string, at time.Time) (core.Installation, error) {
	plain, err := s.keys.Load().Open(stored, seal.AboutApp(workspace, name))
	if err != nil {
		return core.Installation{}, fmt.Errorf("reading the record: %w", err)
	}
	var record installation
	if err := json.Unmarshal(plain, &record); err != nil {
		return core.Installation{}, err
	}
	return record.installation(workspace, name, at), nil
}

func toRecord(in core.Installation) installation {
	record := installation{
		ID: in.ID, Files: in.Files, Sum: in.Sum, Source: in.Source, BundleName: in.BundleName, Version: in.Version, TrustScore: in.TrustScore,
		Manifest: in.Manifest, Dir: in.Dir, Env: reveal(in.Env), Running: in.Running, Patience: in.Patience, Signature: in.Signature, Permissions: in.Permissions,
	}
	if r := in.Remote; r != nil {
		record.Remote = &remote{
			URL: r.URL, Type: r.Type, AuthType: r.Auth.Type, AuthToken: r.Auth.Token.Reveal(),
			AuthName: r.Auth.Name, AuthValue: r.Auth.Value.Reveal(), Headers: reveal(r.Headers),
			Private: r.AllowPrivate, ClientID: r.Auth.ClientID, ClientSecret: r.Auth.ClientSecret.Reveal(), Scopes: r.Auth.Scopes,
		}
	}
	return record
}

func (r installation) installation(workspace, name string, at time.Time) core.Installation {
	in := core.Installation{
		ID: r.ID, Files: r.Files, Sum: r.Sum, Workspace: workspace, Name: name, Source: r.Source, BundleName: r.BundleName, Version: r.Version,
		TrustScore: r.TrustScore, Manifest: r.Manifest, Dir: r.Dir, Env: conceal(r.Env), Running: r.Running, Patience: r.Patience, InstalledAt: at, Signature: r.Signature, Permissions: r.Permissions,
	}
	if m := r.Remote; m != nil {
		in.Remote = &core.Remote{
			URL: m.URL, Type: m.Type, Headers: conceal(m.Headers), AllowPrivate: m.Private,
			Auth: core.RemoteAuth{Type: m.AuthType, Token: core.Secret(m.AuthToken), Name: m.AuthName, Value: core.Secret(m.AuthValue), ClientID: m.ClientID, ClientSecret: core.Secret(m.ClientSecret), Scopes: m.Scopes},
		}
	}
	return in
}

func reveal(in map[string]core.Secret) map[string]string {
	out := make(map[string]string, len(in))
	for k, v := range in {
		out[k] = v.Reveal()
	}
	return out
}

func conceal(in map[string]string) map[string]core.Secret {
	if in == nil {
		return nil
	}
	out := make(map[string]core.Secret, len(in))
	for k, v := range maps.All(in) {
		out[k] = core.Secret(v)
	}
	return out
}

// KeptLists returns the stored lists of an app. sum is the hash of everything that determines them. The error is
// core.CodeNotFound if none are stored, or they were stored with a different hash.
func (s *Store) KeptLists(ctx context.Context, workspace, app, sum string) (record string, err error) {
	err = s.db.Get(ctx, `SELECT record FROM kept_lists WHERE workspace = $1 AND app = $2 AND sum = $3`, []any{workspace, app, sum}, &record)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return "", core.Errorf(core.CodeNotFound, "the lists of app %s are not stored", app)
	case err != nil:
		return "", fmt.Errorf("reading the lists of app %s: %w", app, err)
	}
	return record, nil
}

// PutKeptLists stores the lists of an app, and replaces earlier ones. They are deleted when the app is uninstalled.
func (s *Store) PutKeptLists(ctx context.Context, workspace, app, sum, record string) error {
	return s.db.Update(ctx, "storing the lists of app "+app, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO kept_lists (workspace, app, sum, record) VALUES ($1, $2, $3, $4)
			ON CONFLICT (workspace, app) DO UPDATE SET sum = excluded.sum, record = excluded.record`, workspace, app, sum, record)
		return err
	})
}
