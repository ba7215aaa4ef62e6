package core

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
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

// Can reports whether an app may go from s to next.
func (s State) Can(next State) bool { return slices.Contains(transitions()[s], next) }

// App is an installed bundle as the API shows it.
type App struct {
	Name       string `json:"name"`       // short server name, [a-z0-9-]+
	BundleName string `json:"bundleName"` // @scope/bundle; a remote app's URL
	Version    string `json:"version"`
	Status     State  `json:"status"`
	Asleep     bool   `json:"asleep,omitempty"` // it runs, and its processes start when they are needed
	Type       string `json:"type"`             // "plain" or "upjack"
	Auth       string `json:"auth,omitempty"`   // AuthUser or AuthShared for an app that is called with linked accounts
	ToolCount  int    `json:"toolCount"`
	TrustScore int    `json:"trustScore"` // 0-100
	UI         *UI    `json:"ui"`

	Sandbox *AppSandbox `json:"sandbox,omitempty"` // nil for a remote app

	// Permissions is shown to those who may manage apps; nil when nothing is missing.
	Permissions *AppPermissions `json:"permissions,omitempty"`

	// LastError says why the app is crashed or dead, why a command could not start it, or why a declared app
	// could not be installed.
	LastError string `json:"lastError,omitempty"`
	// LastOutput is the last lines that the app had written to stderr then, without secrets. Only
	// administrators of the workspace see it.
	LastOutput []string `json:"lastOutput,omitempty"`
}

// ForMember returns the app without what only administrators see.
func (a App) ForMember() App {
	a.LastOutput, a.Permissions = nil, nil
	return a
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
	Uptime       float64 `json:"uptime"` // seconds since the last start, 0 when not running
	RestartCount int     `json:"restartCount"`
}

// Tool is one tool exactly as its app listed it. Raw is never encoded again from typed fields, so that
// nothing is lost; the other fields are what the server itself needs.
type Tool struct {
	Server   string          // the app's short name
	Name     string          // the bare name, without the server's prefix
	Raw      json.RawMessage // the tool object of the app's tools/list answer; of TaskOnly tools, without execution.taskSupport
	Listed   json.RawMessage // Raw made valid, for clients; Raw itself when it is valid, nil for the service's own tools
	Schema   json.RawMessage // inputSchema; nil when the app gave none
	ReadOnly bool            // annotations.readOnlyHint
	ViewURI  string          // _meta.ui.resourceUri (MCP Apps), "" when absent
	TaskOnly bool            // execution.taskSupport is required: the app runs it as a task only
	Mirrors  []Mirror        // arguments that requests repeat in headers, by header; nil when the schema marks none
}

// FullName is the tool's name in its workspace: server__name, shortened when that is too long.
func (t Tool) FullName() string { return shortened(t.LongName()) }

// LongName is the tool's name in its workspace before it is shortened.
func (t Tool) LongName() string { return t.Server + "__" + t.Name }

// OwnName is the name that the app gave the tool.
func (t Tool) OwnName() string { return t.Name }

// AppSandbox says how the processes of an app are confined.
type AppSandbox struct {
	Level   string   `json:"level"`            // none, landlock or namespaces
	Network []string `json:"network"`          // none, loopback-off or all, or the allowed destinations
	OwnUser bool     `json:"ownUser"`          // the app's process has a user id of its own; false while none runs
	Weaker  string   `json:"weaker,omitempty"` // why the level is lower than configured; "" when it is not

	Limits   AppLimits `json:"limits"`             // that hold
	Cgroup   []string  `json:"cgroup"`             // those of cpu, memory and processes that the kernel holds; the others are measured
	NoCgroup string    `json:"noCgroup,omitempty"` // why the kernel holds none; "" when it does
}

// AppLimits bound each process tree of an app. Zero is no limit.
type AppLimits struct {
	MemoryMiB   int64   `json:"memoryMiB"`
	Processes   int     `json:"processes"`
	OpenFiles   int     `json:"openFiles"` // of each process
	FileSizeMiB int64   `json:"fileSizeMiB"`
	CPU         float64 `json:"cpu"` // processors
}

// Registry is a configured bundle registry.
type Registry struct {
	Name    string `json:"name"`
	Adapter string `json:"adapter"`
}

// Mirror is an argument of a tool that requests of MCP 2026-07-28 repeat in an HTTP header, for those
// who route them: the tool's input schema marks it with x-mcp-header.
type Mirror struct {
	Header string   // what follows Mcp-Param- in the header's name
	Path   []string // the members that lead from the arguments to it, one at least
}

// MaxToolName is the longest name of a tool in a workspace: what models and clients accept.
const MaxToolName = 64

// shortened is a name of at most MaxToolName bytes. One that is longer keeps its beginning and ends with
// a hash of all of it, so that it is the same on every server and after every restart.
func shortened(name string) string {
	if len(name) <= MaxToolName {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	hash := "_" + hex.EncodeToString(sum[:4])
	end := MaxToolName - len(hash)
	for !utf8.RuneStart(name[end]) { // names of prompts have any characters
		end--
	}
	return name[:end] + hash
}
