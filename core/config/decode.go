package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/config/schema"
)

// document is the file's form, after defaults; schema.json says what may be in it.
type document struct {
	HTTP           httpSection           `json:"http"`
	APIKey         string                `json:"apiKey"`
	Auth           any                   `json:"auth"`
	SessionStore   any                   `json:"sessionStore"`
	Storage        storageSection        `json:"storage"`
	Registries     []map[string]any      `json:"registries"`
	Features       Features              `json:"features"`
	Apps           map[string]appSection `json:"apps"`
	MCP            mcpSection            `json:"mcp"`
	Chat           chatSection           `json:"chat"`
	Models         modelsSection         `json:"models"`
	Skills         skillsSection         `json:"skills"`
	Log            Log                   `json:"log"`
	Limits         Limits                `json:"limits"`
	Sandbox        sandboxSection        `json:"sandbox"`
	Audit          auditSection          `json:"audit"`
	Tools          toolsSection          `json:"tools"`
	Install        installSection        `json:"install"`
	PluginDefaults pluginsSection        `json:"plugins"`
}

type httpSection struct {
	Host                 string   `json:"host"`
	Port                 int      `json:"port"`
	BaseURL              string   `json:"baseUrl"`
	TrustedProxies       []string `json:"trustedProxies"`
	AllowedHosts         []string `json:"allowedHosts"`
	AllowedOrigins       []string `json:"allowedOrigins"`
	Metrics              string   `json:"metrics"`
	ShutdownDelaySeconds int      `json:"shutdownDelaySeconds"`
	Console              bool     `json:"console"`
	ViewOrigin           string   `json:"viewOrigin"`
}

type appSection struct {
	Path           string            `json:"path"`
	Name           string            `json:"name"`
	Version        string            `json:"version"`
	URL            string            `json:"url"`
	Env            map[string]string `json:"env"`
	Protected      bool              `json:"protected"`
	InstallScripts bool              `json:"installScripts"`
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
	} `json:"auth"`
}

type mcpSection struct {
	MaxSessions       int    `json:"maxSessions"`
	MaxInstances      int    `json:"maxInstances"`
	SessionTTLSeconds int    `json:"sessionTtlSeconds"`
	Replica           string `json:"replica"`
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
	StartTimeoutSeconds int      `json:"startTimeoutSeconds"`
	CallTimeoutSeconds  int      `json:"callTimeoutSeconds"`
	PassEnv             []string `json:"passEnv"`
	TrustedKeys         []string `json:"trustedKeys"`
	RequireSignature    bool     `json:"requireSignature"`
	Registries          []string `json:"registries"`
	Limits              struct {
		MemoryMiB         int64 `json:"memoryMiB"`
		OpenFiles         int   `json:"openFiles"`
		Processes         int   `json:"processes"`
		LogLinesPerSecond int   `json:"logLinesPerSecond"`
	} `json:"limits"`
}

func (s pluginsSection) plugins(base string) Plugins {
	p := Plugins{
		StartTimeout: seconds(s.StartTimeoutSeconds), CallTimeout: seconds(s.CallTimeoutSeconds), PassEnv: s.PassEnv,
		TrustedKeys: s.TrustedKeys, RequireSignature: s.RequireSignature,
		Limits: PluginLimits{
			Memory: s.Limits.MemoryMiB << 20, OpenFiles: s.Limits.OpenFiles, Processes: s.Limits.Processes, LogLines: s.Limits.LogLinesPerSecond,
		},
	}
	for _, registry := range s.Registries {
		if !strings.Contains(registry, "://") {
			registry = absolute(base, registry)
		}
		p.Registries = append(p.Registries, registry)
	}
	return p
}

// decode turns the merged value, which has passed the schema, into the document.
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

// unmarshal keeps numbers as they were written: what an adapter gets is what the operator wrote.
func unmarshal(raw []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	return dec.Decode(into)
}

// config builds the Config of a document. What needs more than copying is filled in by the check.
func (d document) config(base string, env Environment) *Config {
	c := &Config{
		HTTP:         HTTP{ShutdownDelay: seconds(d.HTTP.ShutdownDelaySeconds), Host: d.HTTP.Host, Port: d.HTTP.Port},
		APIKey:       core.Secret(d.APIKey),
		SessionStore: plugin("sessionstore", "sessionStore", d.SessionStore, base),
		Storage:      d.Storage.storage(base),
		Features:     d.Features,
		MCP:          MCP{MaxSessions: d.MCP.MaxSessions, MaxInstances: d.MCP.MaxInstances, SessionTTL: seconds(d.MCP.SessionTTLSeconds), Replica: d.MCP.Replica},
		Chat:         Chat{ElicitationTimeout: seconds(d.Chat.ElicitationTimeoutSeconds)},
		Models:       d.Models.models(base, env),
		Skills:       d.Skills.skills(base),
		Log:          d.Log,
		Limits:       d.Limits,
		Sandbox:      d.Sandbox.over(Sandbox{}, base),
		Audit:        d.Audit.audit(base),
		Tools:        d.Tools.tools(),
		Install:      d.Install.install(),
		Plugins:      d.PluginDefaults.plugins(base),
		Apps:         make(map[string]App, len(d.Apps)),
	}
	for _, section := range d.authSections() {
		c.Auth = append(c.Auth, section.auth(base))
	}
	for i, section := range d.Registries {
		at := fmt.Sprintf("registries[%d]", i)
		c.Registries = append(c.Registries, Registry{Plugin: plugin("registry", at, section, base), Name: text(section, "name")})
	}
	for name, section := range d.Apps {
		app := section.app(base)
		if section.Sandbox != nil {
			own := section.Sandbox.over(c.Sandbox, base)
			app.Sandbox = &own
		}
		c.Apps[name] = app
	}
	return c
}

// plugin reads an adapter's section: a name alone, or a mapping.
func plugin(kind, at string, section any, base string) Plugin {
	if name, short := section.(string); short {
		return Plugin{Adapter: name, At: at}
	}
	keys, _ := section.(map[string]any)
	p := Plugin{Adapter: text(keys, "adapter"), SHA256: strings.ToLower(text(keys, "sha256")), At: at}
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

// with returns the settings with one more key, unless it is set already.
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

// audiences reads auth.audience: a list, one, or the word any.
func audiences(v any) (list []string, all bool) {
	switch v := v.(type) {
	case string:
		if v == "any" {
			return nil, true
		}
		return []string{v}, false
	default:
		return texts(v), false
	}
}

// admins reads auth.admins. Emails are compared without regard to case.
func admins(v any) []string {
	list := texts(v)
	for i, name := range list {
		if strings.Contains(name, "@") {
			list[i] = strings.ToLower(name)
		}
	}
	return list
}

// joinRule reads auth.join.
func joinRule(v any) Join {
	section, set := v.(map[string]any)
	if !set {
		return Join{}
	}
	workspace := text(section, "workspace")
	if workspace == "default" {
		workspace = core.DefaultWorkspaceID
	}
	return Join{Workspace: workspace, Role: core.Role(text(section, "role"))}
}

func (s appSection) app(base string) App {
	app := App{Version: s.Version, Env: secrets(s.Env), Protected: s.Protected, InstallScripts: s.InstallScripts}
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
		app.Remote.Type, app.Remote.Headers = t.Type, secrets(t.Headers)
		if t.Auth.Type != "" {
			app.Remote.Auth = core.RemoteAuth{Type: t.Auth.Type, Token: core.Secret(t.Auth.Token), Name: t.Auth.Name, Value: core.Secret(t.Auth.Value)}
		}
	}
	return app
}

func secrets(in map[string]string) map[string]core.Secret {
	if len(in) == 0 {
		return nil
	}
	out := make(map[string]core.Secret, len(in))
	for k, v := range in {
		out[k] = core.Secret(v)
	}
	return out
}

func text(section map[string]any, key string) string {
	s, _ := section[key].(string)
	return s
}

func texts(v any) []string {
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
