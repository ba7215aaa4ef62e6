package core

import (
	"encoding/json"
	"slices"
)

// State is where an app stands in its life (spec part 3).
type State string

// The five states of spec part 3.
const (
	StateStarting State = "starting"
	StateRunning  State = "running"
	StateCrashed  State = "crashed"
	StateDead     State = "dead"
	StateStopped  State = "stopped"
)

// transitions is the whole life of an app (spec part 3): what is not listed never happens.
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

// App is an installed bundle as the API shows it (spec part 2).
type App struct {
	Name       string `json:"name"`       // short server name, [a-z0-9-]+
	BundleName string `json:"bundleName"` // @scope/bundle; a remote app's URL
	Version    string `json:"version"`
	Status     State  `json:"status"`
	Type       string `json:"type"` // "plain" or "upjack"
	ToolCount  int    `json:"toolCount"`
	TrustScore int    `json:"trustScore"` // 0-100
	UI         *UI    `json:"ui"`
}

// UI says how an app shows itself (spec part 2).
type UI struct {
	Name        string      `json:"name"`
	Icon        string      `json:"icon"`
	PrimaryView PrimaryView `json:"primaryView"`
}

// PrimaryView names the resource an app opens with.
type PrimaryView struct {
	ResourceURI string `json:"resourceUri"` // ui://<app>/<view>
}

// AppHealth is one app's detailed health (spec part 2).
type AppHealth struct {
	Name         string  `json:"name"`
	State        State   `json:"state"`
	Uptime       float64 `json:"uptime"` // seconds since the last start, 0 when not running
	RestartCount int     `json:"restartCount"`
}

// Tool is one tool exactly as its app listed it. Raw is never re-marshalled from typed fields, so
// nothing the app said is lost; the other fields are what the server itself must know.
type Tool struct {
	Server   string          // the app's short name
	Name     string          // the bare name, without the server's prefix
	Raw      json.RawMessage // the tool object of the app's tools/list answer
	Schema   json.RawMessage // inputSchema; nil when the app gave none
	ReadOnly bool            // annotations.readOnlyHint
	ViewURI  string          // _meta.ui.resourceUri (MCP Apps), "" when absent
	Mirrors  []Mirror        // arguments that requests repeat in headers, by header; nil when the schema marks none
}

// FullName is the tool's name in its workspace (contract part 7).
func (t Tool) FullName() string { return t.Server + "__" + t.Name }
