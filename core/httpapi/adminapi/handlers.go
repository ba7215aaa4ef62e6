package adminapi

import (
	"context"
	"encoding/json"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/access"
)

// Tools runs the server's own tools.
type Tools interface {
	RunSystem(ctx context.Context, c core.Caller, name string, arguments json.RawMessage) (json.RawMessage, error)
}

// Keys are the API keys. Its errors are core.Errors.
type Keys interface {
	Keys(ctx context.Context, c core.Caller) ([]core.APIKey, error)
	CreateKey(ctx context.Context, c core.Caller, k access.NewKey) (core.APIKey, core.Secret, error)
	RevokeKey(ctx context.Context, c core.Caller, id string) error
}

// Models are the models in use and the providers that can be chosen from.
type Models interface {
	ModelSettings(ctx context.Context) (core.ModelSettings, error)
}

// Registries lists the configured bundle registries.
type Registries interface {
	Registries() []core.Registry
}

// Handlers are the handlers of the routes.
type Handlers struct {
	Tools      Tools
	Keys       Keys
	Models     Models
	Registries Registries
	Audit      AuditTrail
	Settings   func() []Setting // in force, in the order of their paths
	Plugins    func() []Plugin
}
