package core

import (
	"encoding/json"
	"slices"
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
	Type       string `json:"type"` // "plain" or "upjack"
	ToolCount  int    `json:"toolCount"`
	TrustScore int    `json:"trustScore"` // 0-100
	UI         *UI    `json:"ui"`

	Sandbox *AppSandbox `json:"sandbox,omitempty"` // nil for a remote app

	// LastError says why the app is crashed or dead, why a command could not start it, or why a declared app
	// could not be installed.
	LastError string `json:"lastError,omitempty"`
	// LastOutput is the last lines that the app had written to stderr then, without secrets. Only
	// administrators of the workspace see it.
	LastOutput []string `json:"lastOutput,omitempty"`
}

// ForMember returns the app without what only administrators see.
func (a App) ForMember() App {
	a.LastOutput = nil
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

// AppSandbox says how the processes of an app are confined.
type AppSandbox struct {
	Level   string   `json:"level"`            // none, landlock or namespaces
	Network []string `json:"network"`          // none, loopback-off or all, or the allowed destinations
	OwnUser bool     `json:"ownUser"`          // the server gives the app a user id of its own, where its files allow it
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
