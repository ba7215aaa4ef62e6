package table

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/store"
)

// service is the setup of one instance of the service.
type service struct {
	name       string
	bundle     []string       // arguments for this executable to run the bundle
	auth       map[string]any // the auth section; nil means dev mode
	sessions   map[string]any // the sessionStore section; nil means memory
	models     map[string]any // the models section; nil means none
	storage    map[string]any // the storage section; nil means a file in the home
	apps       int            // apps of this bundle; 0 means one, which is called bench
	remotes    map[string]any // additional remote apps, by name
	sandbox    map[string]any // the sandbox section; nil means the defaults
	idle       string         // the setting idle; "" means the default
	maxAwake   int            // the setting apps.maxAwake
	workspaces int            // workspaces in addition to the default one, each with an app
	env        []string       // environment variables of its process
	filled     bool           // its storage already contains conversations
}

// ownSchema reports whether this build writes the state before the service starts. Another build may have a
// different schema, so the two are not compared.
func (s service) ownSchema() bool { return s.workspaces > 0 || s.filled }

// startService installs the bundle from a directory under the name "bench", and starts an executable of the
// service.
func (b *bench) startService(ctx context.Context, executable string, s service) (*process, error) {
	home, err := b.home(ctx, executable, s)
	if err != nil {
		return nil, err
	}
	p, err := startWith(ctx, runEnv{env: s.env}, serviceURL, executable, "serve", "--home", home)
	if err != nil {
		return nil, err
	}
	b.started = append(b.started, p)
	return p, nil
}

// serviceURL returns the address in the log line that a server writes when it listens. The message differs
// between builds, but the fields home and url do not.
func serviceURL(line string) string {
	var entry struct {
		Home string `json:"home"`
		URL  string `json:"url"`
	}
	if json.Unmarshal([]byte(line), &entry) != nil || entry.Home == "" || !strings.HasPrefix(entry.URL, "http://") {
		return ""
	}
	return entry.URL + "/mcp"
}

// home creates the home for an executable of the service: the bundle, the configuration and the other
// workspaces.
func (b *bench) home(ctx context.Context, executable string, s service) (string, error) {
	home := filepath.Join(b.dir, s.name)
	bundle := filepath.Join(home, "bundle")
	if err := os.MkdirAll(bundle, 0o700); err != nil {
		return "", err
	}
	manifest := map[string]any{
		"manifest_version": "0.3", "name": "@ropewalk/bench", "version": "1.0.0", "description": "The benchmark's bundle.",
		"author": map[string]any{"name": "Ropewalk"},
		"server": map[string]any{"type": "binary", "entry_point": "bundle", "mcp_config": map[string]any{"command": "${__dirname}/bundle", "args": s.bundle}},
	}
	if err := provide(b.o.Self, filepath.Join(bundle, "bundle")); err != nil {
		return "", err
	}
	config := map[string]any{
		"http": map[string]any{"port": 0}, "mcp": map[string]any{"maxSessions": 10_000}, "log": map[string]any{"format": "json"},
	}
	apps := map[string]any{}
	for n := range max(1, s.apps) {
		apps[appName(n)] = map[string]any{"path": bundle}
	}
	if s.maxAwake > 0 {
		apps["maxAwake"] = s.maxAwake
	}
	if s.idle != "" {
		config["idle"] = s.idle
	}
	maps.Copy(apps, s.remotes)
	config["apps"] = apps
	limited, err := hasLimits(ctx, executable)
	if err != nil {
		return "", err
	}
	if limited { // a single user makes all requests
		config["limits"] = map[string]any{"sessions": 0, "calls": 0, "callsPerSecond": 0}
	}
	if s.auth != nil {
		config["auth"] = s.auth
	}
	for name, section := range map[string]map[string]any{"sessionStore": s.sessions, "models": s.models, "storage": s.storage, "sandbox": s.sandbox} {
		if section != nil {
			config[name] = section
		}
	}
	for path, value := range map[string]any{filepath.Join(bundle, "manifest.json"): manifest, filepath.Join(home, "ropewalk.yaml"): config} {
		raw, err := json.MarshalIndent(value, "", "  ") // JSON is also YAML
		if err != nil {
			return "", err
		}
		if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, raw) {
			continue // an app whose files have new modification times does not stay asleep
		}
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			return "", err
		}
	}
	return home, b.populate(ctx, home, bundle, s)
}

// appName returns the name of the nth app of a service, counting from 0.
func appName(n int) string {
	if n == 0 {
		return "bench"
	}
	return fmt.Sprintf("bench%d", n)
}

// hasLimits reports whether an executable of the service has the limits setting. An older one may not have it.
func hasLimits(ctx context.Context, executable string) (bool, error) {
	raw, err := exec.CommandContext(ctx, executable, "config", "schema").CombinedOutput() // older versions write to standard error
	if err != nil {
		return false, fmt.Errorf("%s config schema: %w", executable, err)
	}
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if err := json.Unmarshal(raw, &schema); err != nil {
		return false, fmt.Errorf("%s config schema: %w", executable, err)
	}
	_, has := schema.Properties["limits"]
	return has, nil
}

// provide makes an executable available at a path in a bundle, because an app's sandbox allows no other
// path.
func provide(executable, path string) error {
	err := os.Link(executable, path)
	if err == nil || errors.Is(err, os.ErrExist) {
		return nil
	}
	raw, err := os.ReadFile(executable) // a hard link cannot cross file systems
	if err != nil {
		return err
	}
	return os.WriteFile(path, raw, 0o700)
}

// populate creates additional workspaces, each with its own user and an app. The apps are stopped: the
// measurement shows whether other workspaces' configurations slow requests down.
func (b *bench) populate(ctx context.Context, home, bundle string, s service) error {
	if s.workspaces == 0 {
		return nil
	}
	st, err := store.Open(ctx, store.Options{Path: filepath.Join(home, "ropewalk.db"), Logger: b.log})
	if err != nil {
		return err
	}
	for i := range s.workspaces {
		err = b.settle(ctx, st, fmt.Sprintf("user%d", i), bundle)
		if err != nil {
			break
		}
	}
	if closeErr := st.Close(); err == nil {
		err = closeErr
	}
	return err
}

func (b *bench) settle(ctx context.Context, st *store.Store, name, bundle string) error {
	user, err := st.Provision(ctx, core.Identity{Issuer: "https://bench.example", Subject: name, User: core.User{DisplayName: name}}, nil)
	if err != nil {
		return err
	}
	own, err := st.Workspaces(ctx, user)
	if err != nil {
		return err
	}
	manifest, err := os.ReadFile(filepath.Join(bundle, "manifest.json"))
	if err != nil {
		return err
	}
	return st.AddInstallation(ctx, core.Installation{
		Workspace: own[0].ID, Name: "bench", Source: core.Source{Kind: core.SourcePath, Ref: bundle}, BundleName: "@ropewalk/bench",
		Version: "1.0.0", Manifest: manifest, Dir: bundle, InstalledAt: time.Now(),
	})
}
