package core

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// State is the state of an app.
type State string

// The states of an app.
const (
	StateStarting State = "starting"
	StateRunning  State = "running"
	StateCrashed  State = "crashed"
	StateDead     State = "dead"
	StateStopped  State = "stopped"
)

// transitions lists every state change that an app may make.
func transitions() map[State][]State {
	return map[State][]State{
		StateStopped:  {StateStarting},
		StateStarting: {StateRunning, StateCrashed, StateDead, StateStopped},
		StateRunning:  {StateCrashed, StateStopped},
		StateCrashed:  {StateStarting, StateRunning, StateDead, StateStopped},
		StateDead:     {StateStarting, StateStopped},
	}
}

// Can reports whether an app may change from s to next.
func (s State) Can(next State) bool { return slices.Contains(transitions()[s], next) }

// App is an installed bundle as the API shows it.
type App struct {
	Name       string `json:"name"`       // short server name, [a-z0-9-]+
	BundleName string `json:"bundleName"` // @scope/bundle; a remote app's URL
	Version    string `json:"version"`
	Status     State  `json:"status"`
	Asleep     bool   `json:"asleep,omitempty"` // running, but its processes start only when needed
	Type       string `json:"type"`             // "plain" or "upjack"
	Auth       string `json:"auth,omitempty"`   // AuthUser or AuthShared if the app is called with linked accounts
	ToolCount  int    `json:"toolCount"`
	TrustScore int    `json:"trustScore"` // 0-100
	UI         *UI    `json:"ui"`

	ToolFilter *ToolFilter `json:"toolFilter,omitempty"` // nil if the app has all of its tools

	Sandbox *AppSandbox `json:"sandbox,omitempty"` // nil for a remote app

	// Permissions is only for those who may manage apps; nil if nothing is missing.
	Permissions *AppPermissions `json:"permissions,omitempty"`

	// LastError says why the app is crashed or dead, why a command could not start it, or why a declared app
	// could not be installed.
	LastError string `json:"lastError,omitempty"`
	// LastOutput contains the last lines that the app had written to stderr at that point, without secrets. Only
	// administrators of the workspace see it.
	LastOutput []string `json:"lastOutput,omitempty"`
}

// ForMember returns the app without the fields that only administrators see.
func (a App) ForMember() App {
	a.LastOutput, a.Permissions = nil, nil
	return a
}

// AppsFor returns apps as c sees them: without the fields that only administrators see, unless c is one.
func (c Caller) AppsFor(apps []App) []App {
	shown := slices.Clone(apps)
	for i := range shown {
		if c.MayManageApps() != nil {
			shown[i] = shown[i].ForMember()
		}
	}
	return shown
}

// UI describes the user interface of an app.
type UI struct {
	Name        string      `json:"name"`
	Icon        string      `json:"icon"`
	PrimaryView PrimaryView `json:"primaryView"`
}

// PrimaryView names the resource an app opens with.
type PrimaryView struct {
	ResourceURI string `json:"resourceUri"` // ui://<app>/<view>
}

// AppHealth is the detailed health of one app.
type AppHealth struct {
	Name         string  `json:"name"`
	State        State   `json:"state"`
	Uptime       float64 `json:"uptime"` // seconds since the last start; 0 if the app is not running
	RestartCount int     `json:"restartCount"`
}

// Tool is one tool exactly as its app listed it. Raw is never re-encoded from typed fields, so nothing is
// lost; the other fields hold what the server itself needs.
type Tool struct {
	Server   string          // the app's short name
	Name     string          // the bare name, without the server's prefix
	Raw      json.RawMessage // the tool object from the app's tools/list result; without execution.taskSupport if TaskOnly
	Listed   json.RawMessage // Raw corrected for clients; Raw itself if it is valid; nil for the server's own tools
	Schema   json.RawMessage // inputSchema; nil if the app gave none
	ReadOnly bool            // annotations.readOnlyHint
	ViewURI  string          // _meta.ui.resourceUri (MCP Apps), "" if absent
	TaskOnly bool            // execution.taskSupport is "required": the app runs it only as a task
	Mirrors  []Mirror        // arguments that requests repeat in headers, sorted by header; nil if the schema marks none
}

// FullName returns the tool's name in its workspace: server__name, shortened to at most MaxToolName bytes.
func (t Tool) FullName() string { return shortened(t.LongName()) }

// LongName returns the tool's name in its workspace before it is shortened.
func (t Tool) LongName() string { return t.Server + "__" + t.Name }

// OwnName returns the app's own name for the tool.
func (t Tool) OwnName() string { return t.Name }

// AppSandbox describes how an app's processes are confined.
type AppSandbox struct {
	Level   string   `json:"level"`            // none, landlock or namespaces
	Network []string `json:"network"`          // none, loopback-off or all, or the allowed destinations
	OwnUser bool     `json:"ownUser"`          // the app's process has its own user id; false while no process runs
	Weaker  string   `json:"weaker,omitempty"` // why the level is lower than configured; "" if it is not

	Limits   AppLimits `json:"limits"`             // the limits in effect
	Cgroup   []string  `json:"cgroup"`             // which of cpu, memory and processes the kernel enforces; the server measures the others
	NoCgroup string    `json:"noCgroup,omitempty"` // why the kernel enforces none; "" if it does
}

// AppLimits limits each process tree of an app. Zero means no limit.
type AppLimits struct {
	MemoryMiB   int64   `json:"memoryMiB"`
	Processes   int     `json:"processes"`
	OpenFiles   int     `json:"openFiles"` // per process
	FileSizeMiB int64   `json:"fileSizeMiB"`
	CPU         float64 `json:"cpu"` // number of processors
}

// Registry is a configured bundle registry.
type Registry struct {
	Name    string `json:"name"`
	Adapter string `json:"adapter"`
}

// Mirror is a tool argument that requests of MCP 2026-07-28 repeat in an HTTP header, so that intermediaries
// can route by it. The tool's input schema marks the argument with x-mcp-header.
type Mirror struct {
	Header string   // the part of the header's name after Mcp-Param-
	Path   []string // the members that lead from the arguments object to it; at least one
}

// MaxToolName is the maximum length of a tool's name in a workspace, in bytes: models and clients accept no more.
const MaxToolName = 64

// shortened returns name in at most MaxToolName bytes. A longer name keeps its beginning and gets a hash of the
// whole name as its end, so the result is the same on every server and after every restart.
func shortened(name string) string {
	if len(name) <= MaxToolName {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	hash := "_" + hex.EncodeToString(sum[:4])
	end := MaxToolName - len(hash)
	for !utf8.RuneStart(name[end]) { // prompt names may contain any characters
		end--
	}
	return name[:end] + hash
}

// ToolFilter limits the tools of an app. Its patterns are matched against the app's own tool names; * matches any text. A nil filter
// shows all.
type ToolFilter struct {
	Include []string `json:"include,omitempty"` // nil shows all
	Exclude []string `json:"exclude,omitempty"` // takes precedence over Include
}

// Apply returns the tools that the filter shows. The others do not exist for anybody.
func (f *ToolFilter) Apply(tools []Tool) []Tool {
	if f == nil {
		return tools
	}
	include, exclude := NamePattern(f.Include), NamePattern(f.Exclude)
	return slices.DeleteFunc(tools, func(t Tool) bool {
		return include != nil && !include.MatchString(t.Name) || exclude != nil && exclude.MatchString(t.Name)
	})
}

// NamePattern returns an expression for the names of tools that match one of the patterns, in which * matches any text. It
// returns nil if there are no patterns.
func NamePattern(patterns []string) *regexp.Regexp {
	if len(patterns) == 0 {
		return nil
	}
	var names []string
	for _, pattern := range patterns {
		names = append(names, strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, `.*`))
	}
	return regexp.MustCompile(`^(?s:` + strings.Join(names, "|") + `)$`)
}
