package apps

import (
	"cmp"
	"context"
	"maps"
	"path/filepath"
	"slices"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/instance"
	"github.com/ropewalk/ropewalk/core/apps/logs"
	"github.com/ropewalk/ropewalk/core/apps/source"
	"github.com/ropewalk/ropewalk/core/bundle"
)

// Details is everything that the API shows about one app.
type Details struct {
	core.App
	Source      SourceDetails          `json:"source"`
	Signature   *core.BundleSignature  `json:"signature,omitempty"`
	Protected   bool                   `json:"protected"`
	Restarts    int                    `json:"restarts"`
	Since       string                 `json:"since,omitempty"` // when it last started running
	InstalledAt string                 `json:"installedAt,omitempty"`
	DisplayName string                 `json:"displayName,omitempty"`
	Description string                 `json:"description,omitempty"`
	Author      string                 `json:"author,omitempty"`
	ServerType  string                 `json:"serverType,omitempty"`
	Transport   string                 `json:"transport,omitempty"` // for a remote app
	UserConfig  map[string]ConfigField `json:"userConfig"`
	Env         []string               `json:"env"` // names of the installation's values; the values are never shown
	DataPath    string                 `json:"dataPath"`
	Instances   int                    `json:"instances"`   // in the session pool, without the shared one
	MemoryBytes *int64                 `json:"memoryBytes"` // the memory of all instances; nil if no process runs here
}

// SourceDetails says where an app came from.
type SourceDetails struct {
	Kind     core.SourceKind `json:"kind"`
	Ref      string          `json:"ref"`
	Registry string          `json:"registry,omitempty"`
}

// ConfigField is one field of a bundle's user_config. It does not contain the value.
type ConfigField struct {
	Type        string `json:"type"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	Required    bool   `json:"required"`
	Sensitive   bool   `json:"sensitive"`
	IsSet       bool   `json:"isSet"`
}

// ForMember returns the details without the parts that only administrators may see.
func (d Details) ForMember() Details {
	d.App = d.App.ForMember()
	return d
}

// Details returns everything about one app. It returns core.CodeNotFound if the workspace has no app with this name.
func (m *Manager) Details(workspace, name string) (Details, error) {
	a, err := m.find(workspace, name)
	if err != nil {
		shown, missing := m.App(workspace, name)
		return Details{
			App: shown, UserConfig: map[string]ConfigField{}, Env: []string{}, DataPath: source.LayoutOf(m.o.Home, workspace).AppDir(name),
		}, missing
	}
	v := a.now.Load()
	d := Details{
		App: m.describe(a), Signature: v.record.Signature, Protected: m.isProtected(a.key), Restarts: v.restarts, InstalledAt: core.Timestamp(v.record.InstalledAt),
		Source:     SourceDetails{v.record.Source.Kind, v.record.Source.PublicRef(), v.record.Source.Registry},
		UserConfig: map[string]ConfigField{}, Env: slices.AppendSeq([]string{}, maps.Keys(v.record.Env)), DataPath: a.layout().AppDir(name),
		Instances: len(a.dialog.Instances()),
	}
	slices.Sort(d.Env)
	if v.state == core.StateRunning {
		d.Since = core.Timestamp(v.since)
	}
	d.MemoryBytes = memoryOf(v.instance, a.dialog.Instances())
	if v.record.Remote != nil {
		d.Transport = v.record.Remote.Type
	}
	if manifest, err := bundle.ParseManifest(v.record.Manifest); err == nil {
		d.addManifest(manifest, v.record)
	}
	return d, nil
}

// memoryOf returns the memory that an app's processes use, in bytes. It returns nil if no process runs on this machine.
func memoryOf(shared instance.Instance, pool []instance.Instance) *int64 {
	all := []any{shared}
	for _, one := range pool {
		all = append(all, one)
	}
	var sum int64
	local := false
	for _, one := range all {
		if process, ok := one.(interface{ Memory() int64 }); ok {
			sum, local = sum+process.Memory(), true
		}
	}
	if !local {
		return nil
	}
	return &sum
}

func (d *Details) addManifest(m *bundle.Manifest, record core.Installation) {
	d.DisplayName, d.Description, d.Author = cmp.Or(m.DisplayName, m.Name), m.Description, m.Author.Name
	d.ServerType = string(m.Server.Type)
	supplied := m.Supplied(record.Env)
	for key, f := range m.UserConfig {
		d.UserConfig[key] = ConfigField{
			Type: f.Type, Title: f.Title, Description: f.Description, Required: f.Required, Sensitive: f.Sensitive,
			IsSet: supplied[key],
		}
	}
}

// describe returns an app in the form that the API shows.
func (m *Manager) describe(a *app) core.App {
	v := a.now.Load()
	shown := v.app()
	if v.record.Remote != nil {
		return shown
	}
	settings := m.sandboxOf(a.key)
	level := m.o.Confinement.Level(settings)
	shown.Sandbox = &core.AppSandbox{Level: level.String(), Network: slices.Clone(settings.Network.Values())}
	if process, ok := v.instance.(interface{ OwnUser() bool }); ok {
		shown.Sandbox.OwnUser = process.OwnUser()
	}
	if level < settings.Level {
		shown.Sandbox.Weaker = m.o.Confinement.Probe.Reason
	}
	enforced := m.o.Confinement.EnforcedLimits(settings)
	shown.Sandbox.Limits = core.AppLimits{
		MemoryMiB: enforced.Memory >> 20, Processes: enforced.Processes, OpenFiles: enforced.OpenFiles, FileSizeMiB: enforced.FileSize >> 20, CPU: enforced.CPU,
	}
	shown.Sandbox.Cgroup, shown.Sandbox.NoCgroup = m.o.Confinement.Cgroups.Bounds().Names(), m.o.Confinement.NoCgroups
	return shown
}

// LogLine is one line that an app wrote to stderr, with secrets removed.
type LogLine struct {
	Text string `json:"text"`
}

// Logs returns the last lines of an app's log. With follow, more receives the lines written from now on, until ctx
// ends; otherwise it is nil. A remote app has no log, so there are no lines.
func (m *Manager) Logs(ctx context.Context, workspace, name string, tail int, follow bool) (lines []LogLine, more <-chan LogLine, err error) {
	a, err := m.find(workspace, name)
	if err != nil {
		return nil, nil, err
	}
	path := filepath.Clean(a.layout().LogFile(name))
	var followed <-chan string
	if follow {
		followed = logs.Follow(ctx, path)
	}
	texts, err := logs.Tail(path, tail)
	if err != nil {
		return nil, nil, core.Wrap(core.CodeUnavailable, err, "the log of app "+name+" cannot be read")
	}
	lines = make([]LogLine, len(texts))
	for i, text := range texts {
		lines[i] = LogLine{text}
	}
	if !follow {
		return lines, nil, nil
	}
	out := make(chan LogLine)
	go func() {
		defer close(out)
		for text := range followed {
			select {
			case out <- LogLine{text}:
			case <-ctx.Done():
				return
			}
		}
	}()
	return lines, out, nil
}
