package config

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/config/schema"
)

// document is the structure of the file, with defaults applied. schema.json defines what it may contain.
type document struct {
	HTTP           httpSection            `json:"http"`
	APIKey         string                 `json:"apiKey"`
	Auth           any                    `json:"auth"`
	SessionStore   any                    `json:"sessionStore"`
	Storage        storageSection         `json:"storage"`
	Registries     []any                  `json:"registries"`
	Features       Features               `json:"features"`
	Apps           appsSection            `json:"apps"`
	MCP            mcpSection             `json:"mcp"`
	Chat           chatSection            `json:"chat"`
	Models         modelsSection          `json:"models"`
	Skills         Skills                 `json:"skills"`
	Log            Log                    `json:"log"`
	Limits         Limits                 `json:"limits"`
	Sandbox        sandboxSection         `json:"sandbox"`
	Idle           string                 `json:"idle"`
	Audit          auditSection           `json:"audit"`
	Tools          toolsSection           `json:"tools"`
	Views          map[string]viewSection `json:"views"`
	Install        installSection         `json:"install"`
	PluginDefaults pluginsSection         `json:"plugins"`
}

// httpSection is HTTP before it is checked.
type httpSection struct {
	HTTP
	TrustedProxies       []string
	AllowedOrigins       []string
	ShutdownDelaySeconds int
}

// appsSection contains the sections of apps by name, and the settings for all of them.
type appsSection struct {
	MaxAwake int
	named    map[string]appSection
}

// UnmarshalJSON separates the two. They cannot collide, because app names have no capital letters.
func (s *appsSection) UnmarshalJSON(raw []byte) error {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		return err
	}
	s.named = make(map[string]appSection, len(all))
	for name, section := range all {
		if name == "maxAwake" {
			if err := json.Unmarshal(section, &s.MaxAwake); err != nil {
				return err
			}
			continue
		}
		var app appSection
		if err := unmarshal(section, &app); err != nil {
			return err
		}
		s.named[name] = app
	}
	return nil
}

type appSection struct {
	Path           string            `json:"path"`
	Name           string            `json:"name"`
	Version        string            `json:"version"`
	URL            string            `json:"url"`
	Env            map[string]string `json:"env"`
	Protected      bool              `json:"protected"`
	InstallScripts bool              `json:"installScripts"`
	StartTimeout   int               `json:"startTimeoutSeconds"`
	Idle           string            `json:"idle"`
	Sandbox        *sandboxSection   `json:"sandbox"`
	Transport      *transportSection `json:"transport"`
}

type transportSection struct {
	Type    string            `json:"type"`
	Headers map[string]string `json:"headers"`
	Auth    struct {
		Type  string `json:"type"`
		Token string `json:"token"`
		Name  string `json:"name"`
		Value string `json:"value"`

		ClientID     string   `json:"clientId"`
		ClientSecret string   `json:"clientSecret"`
		Issuer       string   `json:"issuer"`
		Scopes       []string `json:"scopes"`
		TokenURL     string   `json:"tokenUrl"`
		Audience     string   `json:"audience"`
	} `json:"auth"`
}

type viewSection struct {
	core.View
	Workspaces []string `json:"workspaces"`
}

// viewsOf returns the declared views by name.
func viewsOf(sections map[string]viewSection) (all []View) {
	for _, name := range slices.Sorted(maps.Keys(sections)) {
		v := View(sections[name])
		v.Name = name
		all = append(all, v)
	}
	return all
}

type mcpSection struct {
	MCP
	SessionTTLSeconds int
}

type chatSection struct {
	ElicitationTimeoutSeconds int `json:"elicitationTimeoutSeconds"`
}

type storageSection struct {
	URL                    string   `json:"url"`
	Key                    string   `json:"key"`
	KeyFile                string   `json:"keyFile"`
	KeyCommand             []string `json:"keyCommand"`
	UsageRetentionDays     int      `json:"usageRetentionDays"`
	ApprovalRetentionDays  int      `json:"approvalRetentionDays"`
	EventRetentionHours    int      `json:"eventRetentionHours"`
	StaleMembershipSeconds int      `json:"staleMembershipSeconds"`
}

type pluginsSection struct {
	Plugins
	StartTimeoutSeconds int
	CallTimeoutSeconds  int
	Limits              struct {
		PluginLimits
		MemoryMiB         int64
		LogLinesPerSecond int
	}
}

func (s pluginsSection) plugins(base string) Plugins {
	p := s.Plugins
	p.StartTimeout, p.CallTimeout, p.Limits = seconds(s.StartTimeoutSeconds), seconds(s.CallTimeoutSeconds), s.Limits.PluginLimits
	p.Limits.Memory, p.Limits.LogLines = s.Limits.MemoryMiB<<20, s.Limits.LogLinesPerSecond
	for i, registry := range p.Registries {
		if !strings.Contains(registry, "://") {
			p.Registries[i] = absolute(base, registry)
		}
	}
	return p
}

// decode converts the merged value, which has passed the schema, to a document.
func decode(value map[string]any) (document, error) {
	var d document
	raw, err := json.Marshal(value)
	if err == nil {
		err = unmarshal(raw, &d)
	}
	if err != nil {
		return d, fmt.Errorf("the configuration passed its schema but does not fit its type: %w", err)
	}
	return d, nil
}

// unmarshal keeps numbers as written, so that an adapter gets exactly what the operator wrote.
func unmarshal(raw []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	return dec.Decode(into)
}

// config creates the Config for a document. The check fills in values that cannot simply be copied.
func (d document) config(base string, env Environment) *Config {
	c := &Config{
		HTTP:         HTTP{ShutdownDelay: seconds(d.HTTP.ShutdownDelaySeconds), Host: d.HTTP.Host, Port: d.HTTP.Port},
		APIKey:       core.Secret(d.APIKey),
		SessionStore: plugin("sessionstore", "sessionStore", d.SessionStore, base),
		Storage:      d.Storage.storage(base),
		Features:     d.Features,
		MCP:          d.MCP.MCP,
		Chat:         Chat{ElicitationTimeout: seconds(d.Chat.ElicitationTimeoutSeconds)},
		Models:       d.Models.models(base, env),
		Skills:       Skills{absoluteAll(base, d.Skills.Directories)},
		Log:          d.Log,
		Limits:       d.Limits,
		Sandbox:      d.Sandbox.over(Sandbox{}, base),
		Idle:         idle(d.Idle),
		Audit:        d.Audit.audit(base),
		Tools:        d.Tools.tools(),
		Views:        viewsOf(d.Views),
		Install:      Install{Allow: d.Install.Allow, Registries: d.Install.Registries, RequireSignature: d.Install.RequireSignature},
		Plugins:      d.PluginDefaults.plugins(base),
		Apps:         make(map[string]App, len(d.Apps.named)),
		MaxAwake:     d.Apps.MaxAwake,
	}
	c.MCP.SessionTTL = seconds(d.MCP.SessionTTLSeconds)
	for _, section := range d.authSections() {
		c.Auth = append(c.Auth, section.auth(base))
	}
	for i, section := range d.Registries {
		c.Registries = append(c.Registries, plugin("registry", fmt.Sprintf("registries[%d]", i), section, base))
	}
	for name, section := range d.Apps.named {
		app := section.app(base)
		if section.Sandbox != nil {
			own := section.Sandbox.over(c.Sandbox, base)
			app.Sandbox = &own
		}
		c.Apps[name] = app
	}
	return c
}

// plugin reads an adapter's section, which is either just a name or a mapping.
func plugin(kind, at string, section any, base string) Plugin {
	if name, short := section.(string); short {
		return Plugin{Name: name, Adapter: name, At: at}
	}
	keys, _ := section.(map[string]any)
	p := Plugin{Adapter: text(keys, "adapter"), SHA256: strings.ToLower(text(keys, "sha256")), At: at}
	p.Name = p.Adapter
	if slices.Contains(schema.HostKeys(kind), "name") {
		p.Name = cmp.Or(text(keys, "name"), p.Adapter)
	}
	if path := text(keys, "path"); path != "" {
		p.Path = absolute(base, path)
	}
	settings := make(map[string]any)
	for k, v := range keys {
		if !slices.Contains(schema.HostKeys(kind), k) {
			settings[k] = v
		}
	}
	if len(settings) > 0 {
		if raw, err := json.Marshal(settings); err == nil {
			p.Settings = NewSettings(raw)
		}
	}
	return p
}

// with returns the settings with an additional key, unless it is already set.
func (s Settings) with(key, value string) Settings {
	object := make(map[string]any)
	if unmarshal(s.JSON(), &object) != nil || object[key] != nil {
		return s
	}
	object[key] = value
	raw, err := json.Marshal(object)
	if err != nil {
		return s
	}
	return NewSettings(raw)
}

// audiences reads auth.audience, which is a list, a single value, or the word any.
func audiences(v any) (list []string, all bool) {
	switch v := v.(type) {
	case string:
		if v == "any" {
			return nil, true
		}
		return []string{v}, false
	default:
		return stringList(v), false
	}
}

// joinRules reads auth.join, which is one rule or a list of them.
func joinRules(v any) []Join {
	switch v := v.(type) {
	case []any:
		var all []Join
		for _, one := range v {
			all = append(all, joinRules(one)...)
		}
		return all
	case map[string]any:
		workspace := cmp.Or(text(v, "workspace"), "default")
		if workspace == "default" {
			workspace = core.DefaultWorkspaceID
		}
		return []Join{{Group: text(v, "group"), Workspace: workspace, Role: cmp.Or(core.Role(text(v, "role")), core.RoleMember)}}
	}
	return nil
}

func (s appSection) app(base string) App {
	app := App{Version: s.Version, Env: core.Secrets(s.Env), Protected: s.Protected, InstallScripts: s.InstallScripts, StartTimeout: seconds(s.StartTimeout)}
	if s.Idle != "" {
		limit := idle(s.Idle)
		app.Idle = &limit
	}
	switch {
	case s.Path != "":
		app.Source = core.Source{Kind: core.SourcePath, Ref: absolute(base, s.Path)}
	case s.Name != "":
		app.Source = core.Source{Kind: core.SourceName, Ref: s.Name}
	case s.URL != "":
		app.Source = core.Source{Kind: core.SourceURL, Ref: s.URL}
		app.Remote = &core.Remote{URL: s.URL, Type: "streamable-http", Auth: core.RemoteAuth{Type: "none"}, AllowPrivate: true}
	}
	if t := s.Transport; t != nil && app.Remote != nil {
		app.Remote.Type, app.Remote.Headers = t.Type, core.Secrets(t.Headers)
		if t.Auth.Type != "" {
			app.Remote.Auth = core.RemoteAuth{Type: t.Auth.Type, Token: core.Secret(t.Auth.Token), Name: t.Auth.Name, Value: core.Secret(t.Auth.Value)}
			app.Remote.Auth.ClientID, app.Remote.Auth.ClientSecret, app.Remote.Auth.Scopes = t.Auth.ClientID, core.Secret(t.Auth.ClientSecret), strings.Join(t.Auth.Scopes, " ")
			app.Remote.Auth.Issuer, app.Remote.Auth.TokenURL, app.Remote.Auth.Audience = t.Auth.Issuer, t.Auth.TokenURL, t.Auth.Audience
		}
	}
	return app
}

// idle reads idle and apps.<name>.idle, whose format the schema has checked. "never" is 0.
func idle(text string) time.Duration {
	d, _ := time.ParseDuration(text)
	return d
}

func text(section map[string]any, key string) string {
	s, _ := section[key].(string)
	return s
}

func stringList(v any) []string {
	list, _ := v.([]any)
	var out []string
	for _, item := range list {
		if s, ok := item.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

func days(n int) time.Duration { return time.Duration(n) * 24 * time.Hour }

func absolute(base, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(base, path)
}

func (s storageSection) storage(base string) Storage {
	storage := Storage{
		URL: core.Secret(s.URL), UsageRetention: days(s.UsageRetentionDays), ApprovalRetention: days(s.ApprovalRetentionDays),
		EventRetention:  time.Duration(s.EventRetentionHours) * time.Hour,
		StaleMembership: seconds(s.StaleMembershipSeconds),
		Keys:            StorageKeys{Text: core.Secret(s.Key), Command: s.KeyCommand},
	}
	if s.KeyFile != "" {
		storage.Keys.File = absolute(base, s.KeyFile)
	}
	return storage
}

// Settings is an adapter's part of the configuration, a JSON object. It may contain secrets, so printing it
// in any way gives "[redacted]"; only JSON returns the contents.
type Settings struct{ raw core.Secret }

// NewSettings wraps a JSON object.
func NewSettings(object json.RawMessage) Settings { return Settings{core.Secret(object)} }

// JSON returns the object itself, or {} if nothing is set.
func (s Settings) JSON() json.RawMessage {
	if s.raw == "" {
		return json.RawMessage("{}")
	}
	return json.RawMessage(s.raw.Reveal())
}

// Format implements fmt.Formatter for every verb.
func (s Settings) Format(f fmt.State, verb rune) { s.raw.Format(f, verb) }

// MarshalText implements encoding.TextMarshaler, which JSON and YAML use.
func (s Settings) MarshalText() ([]byte, error) { return s.raw.MarshalText() }
