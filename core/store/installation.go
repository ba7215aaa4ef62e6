package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

// installation is how an installed app is kept. It is the one place where the secrets of an app
// are written out; the file they go to has mode 0600.
type installation struct {
	Source     core.Source       `json:"source"`
	BundleName string            `json:"bundleName"`
	Version    string            `json:"version"`
	TrustScore int               `json:"trustScore"`
	Manifest   json.RawMessage   `json:"manifest,omitempty"`
	Dir        string            `json:"dir,omitempty"`
	Env        map[string]string `json:"env,omitempty"`
	Remote     *remote           `json:"remote,omitempty"`
	Running    bool              `json:"running"`
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
}

// PutInstallation keeps an installed app, new or changed. Its workspace must exist.
func (s *Store) PutInstallation(ctx context.Context, in core.Installation) error {
	what := fmt.Sprintf("keeping app %s of %s", in.Name, in.Workspace)
	record, err := json.Marshal(toRecord(in))
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return s.change(ctx, what, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `
			INSERT INTO installations (workspace, name, record, installed_at) VALUES ($1, $2, $3, $4)
			ON CONFLICT (workspace, name) DO UPDATE SET record = excluded.record, installed_at = excluded.installed_at`,
			in.Workspace, in.Name, string(record), millis(in.InstalledAt)); err != nil {
			return err
		}
		return s.note(ctx, tx, core.ChangeApp, in.Workspace, in.Name)
	})
}

// DeleteInstallation forgets an installed app. Forgetting one that is not there is not an error.
func (s *Store) DeleteInstallation(ctx context.Context, workspace, name string) error {
	return s.change(ctx, "forgetting app "+name, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `DELETE FROM installations WHERE workspace = $1 AND name = $2`, workspace, name); err != nil {
			return err
		}
		return s.note(ctx, tx, core.ChangeApp, workspace, name)
	})
}

// Installations returns every installed app of every workspace, by workspace and name.
func (s *Store) Installations(ctx context.Context) ([]core.Installation, error) {
	rows, err := s.read.QueryContext(ctx, `SELECT workspace, name, record, installed_at FROM installations ORDER BY workspace, name`)
	if err != nil {
		return nil, fmt.Errorf("reading the installed apps: %w", explain(err))
	}
	defer func() { _ = rows.Close() }()
	var all []core.Installation
	for rows.Next() {
		var workspace, name, text string
		var installedAt int64
		if err := rows.Scan(&workspace, &name, &text, &installedAt); err != nil {
			return nil, fmt.Errorf("reading the installed apps: %w", err)
		}
		var record installation
		if err := json.Unmarshal([]byte(text), &record); err != nil {
			return nil, fmt.Errorf("reading app %s of %s: %w", name, workspace, err)
		}
		all = append(all, record.installation(workspace, name, fromMillis(installedAt)))
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("reading the installed apps: %w", explain(err))
	}
	return all, nil
}

func toRecord(in core.Installation) installation {
	record := installation{
		Source: in.Source, BundleName: in.BundleName, Version: in.Version, TrustScore: in.TrustScore,
		Manifest: in.Manifest, Dir: in.Dir, Env: reveal(in.Env), Running: in.Running,
	}
	if r := in.Remote; r != nil {
		record.Remote = &remote{
			URL: r.URL, Type: r.Type, AuthType: r.Auth.Type, AuthToken: r.Auth.Token.Reveal(),
			AuthName: r.Auth.Name, AuthValue: r.Auth.Value.Reveal(), Headers: reveal(r.Headers),
			Private: r.AllowPrivate,
		}
	}
	return record
}

func (r installation) installation(workspace, name string, at time.Time) core.Installation {
	in := core.Installation{
		Workspace: workspace, Name: name, Source: r.Source, BundleName: r.BundleName, Version: r.Version,
		TrustScore: r.TrustScore, Manifest: r.Manifest, Dir: r.Dir, Env: conceal(r.Env), Running: r.Running, InstalledAt: at,
	}
	if m := r.Remote; m != nil {
		in.Remote = &core.Remote{
			URL: m.URL, Type: m.Type, Headers: conceal(m.Headers), AllowPrivate: m.Private,
			Auth: core.RemoteAuth{Type: m.AuthType, Token: core.Secret(m.AuthToken), Name: m.AuthName, Value: core.Secret(m.AuthValue)},
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
