// Package adminapi serves the routes for people, workspaces, API keys, models, registries, plugins, the audit trail and
// the configuration.
//
// It translates requests and responses. Package people, which also serves the server's own tools, makes the decisions
// about users, workspaces and keys. Package httpapi owns the route table, which defines what each route requires.
package adminapi

import (
	"context"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/chat"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/limits"
	"github.com/ropewalk/ropewalk/core/people"
	"github.com/ropewalk/ropewalk/core/tools"
)

// Models manages the models in use and the providers to choose from.
type Models interface {
	ModelSettings(ctx context.Context) (core.ModelSettings, error)
	SetModels(ctx context.Context, byDefault, fast *string) (chat.ModelNames, error)
}

// Registries lists and searches the configured bundle registries.
type Registries interface {
	tools.Bundles
	Registries() []core.Registry
}

// AuditTrail reads the recorded events. Its errors are core.Errors.
type AuditTrail interface {
	Records(ctx context.Context, q core.AuditQuery) (core.AuditPage, error)
}

// Handlers holds the route handlers and their dependencies.
type Handlers struct {
	People     *people.Directory
	Views      Views
	Models     Models
	Registries Registries
	Audit      AuditTrail
	AuditReads *limits.Places
	Settings   func() []config.Value // the settings in force, sorted by path
	Plugins    func() []Plugin
}

// Plugin is the state of one adapter of this server, whether built in or an external plugin.
type Plugin struct {
	Kind       string    `json:"kind"`
	Name       string    `json:"name"` // the registry's name, or else the adapter's
	Adapter    string    `json:"adapter"`
	Version    string    `json:"version"`
	State      string    `json:"state"`      // running, restarting, in-process
	Generation int       `json:"generation"` // number of the adapter's current process, starting at 1
	Since      time.Time `json:"since"`      // start of the current generation
	Degraded   bool      `json:"degraded"`   // responding, but most of its recent calls failed or were slow
	Protocol   int       `json:"protocolVersion,omitempty"`
	Calls      uint64    `json:"calls"`
	Errors     uint64    `json:"errors"`
	LastError  string    `json:"lastError,omitempty"` // why the previous generation ended
}
