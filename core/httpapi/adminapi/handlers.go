// Package adminapi serves the routes of people, workspaces, API keys, models, registries, plugins, the audit trail and the
// configuration.
//
// It translates requests and answers. Package people decides what concerns users, workspaces and keys, for the server's own
// tools too; package httpapi owns the route table, which says what each route requires.
package adminapi

import (
	"context"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/chat"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/people"
	"github.com/ropewalk/ropewalk/core/tools"
)

// Models are the models in use and the providers that can be chosen from.
type Models interface {
	ModelSettings(ctx context.Context) (core.ModelSettings, error)
	SetModels(ctx context.Context, byDefault, fast *string) (chat.ModelNames, error)
}

// Registries are the configured bundle registries.
type Registries interface {
	tools.Bundles
	Registries() []core.Registry
}

// AuditTrail reads what was recorded. Its errors are core.Errors.
type AuditTrail interface {
	Records(ctx context.Context, q core.AuditQuery) (core.AuditPage, error)
}

// Handlers are the handlers of the routes.
type Handlers struct {
	People     *people.Directory
	Views      Views
	Models     Models
	Registries Registries
	Audit      AuditTrail
	Settings   func() []config.Value // in force, in the order of their paths
	Plugins    func() []Plugin
}

// Plugin is how one adapter of this server is, a built-in one or a plugin of its own.
type Plugin struct {
	Kind       string    `json:"kind"`
	Name       string    `json:"name"` // the registry's name, else the adapter's
	Adapter    string    `json:"adapter"`
	Version    string    `json:"version"`
	State      string    `json:"state"`      // running, restarting, in-process
	Generation int       `json:"generation"` // which process of it this is, from 1
	Since      time.Time `json:"since"`      // start of the present generation
	Degraded   bool      `json:"degraded"`   // it answers, but most of its last calls failed or were slow
	Protocol   int       `json:"protocolVersion,omitempty"`
	Calls      uint64    `json:"calls"`
	Errors     uint64    `json:"errors"`
	LastError  string    `json:"lastError,omitempty"` // why the generation before ended
}
