package apps

import (
	"context"
	"encoding/json"
	"maps"
	"strings"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/core/bundle"
)

// Settings changes the values of an installation. Values that it does not mention remain unchanged.
type Settings struct {
	Env        map[string]*string         `json:"env"`        // null removes a variable
	UserConfig map[string]json.RawMessage `json:"userConfig"` // by key in user_config; null removes a value

	Caller core.Caller `json:"-"` // who changes them; an organization admin also grants the directories
}

// Configure changes the values of an installation, and restarts the app if it should be running. The new values are
// kept even if the app does not start with them.
//
// Errors: core.CodeNotFound; core.CodeBadRequest with the name of the value; core.CodeCredentialsRequired if a required
// value would be missing; core.CodeStartFailed.
func (m *Manager) Configure(ctx context.Context, workspace, name string, s Settings) (core.App, error) {
	return m.command(ctx, interact.AppRef{Workspace: workspace, Name: name}, core.CodeStartFailed, "restarted with the new values", func(ctx context.Context, a *app) error {
		env, err := a.changedEnv(s)
		if err != nil {
			return invalidCommand{err}
		}
		record, err := a.changeRecord(ctx, func(in *core.Installation) error {
			in.Env = env
			m.updateGrants(in, s)
			return nil
		})
		if err != nil {
			return err
		}
		record.Dir = a.now.Load().record.Dir
		if !record.Running {
			a.setRecord(record)
			return nil
		}
		if err := a.stopToStartAgain(ctx); err != nil {
			return err
		}
		a.setRecord(record)
		return a.startAgain(ctx)
	})
}

// changedEnv returns the installation's values with the changes applied, validated against the manifest.
func (a *app) changedEnv(s Settings) (map[string]core.Secret, error) {
	record := a.now.Load().record
	env := maps.Clone(record.Env)
	if env == nil {
		env = map[string]core.Secret{}
	}
	for name, value := range s.Env {
		if value == nil {
			delete(env, name)
		} else {
			env[name] = core.Secret(*value)
		}
	}
	manifest, err := bundle.ParseManifest(record.Manifest)
	if err != nil {
		manifest = nil // a remote app has none
	}
	for key, raw := range s.UserConfig {
		if manifest == nil || !hasField(manifest, key) {
			return nil, core.Errorf(core.CodeBadRequest, "userConfig.%.100s is not a field of the bundle's user_config", key)
		}
		if string(raw) == "null" {
			delete(env, key)
			continue
		}
		var text string
		if json.Unmarshal(raw, &text) != nil {
			text = strings.TrimSpace(string(raw)) // a number, a boolean or an array
		}
		env[key] = core.Secret(text)
	}
	if manifest == nil {
		return env, bundle.CheckEnv(env)
	}
	if err := manifest.CheckValues(env); err != nil {
		return nil, err
	}
	if missing := manifest.Missing(env); len(missing) > 0 {
		return nil, bundle.CredentialsRequired(missing)
	}
	return env, nil
}

func hasField(m *bundle.Manifest, key string) bool {
	_, ok := m.UserConfig[key]
	return ok
}

// Restart stops an app and starts it again, with the full number of restart attempts.
//
// Errors: core.CodeNotFound; core.CodeStartFailed with the reason.
func (m *Manager) Restart(ctx context.Context, workspace, name string) (core.App, error) {
	return m.command(ctx, interact.AppRef{Workspace: workspace, Name: name}, core.CodeStartFailed, "restarted", func(ctx context.Context, a *app) error {
		if err := a.stopToStartAgain(ctx); err != nil {
			return err
		}
		return a.startAgain(ctx)
	})
}

// startAgain starts an app that a command has stopped. If that fails, the supervisor keeps trying, as after a crash.
// The caller must hold the turn.
func (a *app) startAgain(ctx context.Context) error {
	ctx, done := a.interruptible(ctx)
	defer done()
	err := a.startStopped(ctx)
	if err != nil && a.now.Load().record.Running && a.manager.life.Err() == nil {
		a.resume()
	}
	return err
}
