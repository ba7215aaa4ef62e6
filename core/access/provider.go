package access

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth"
)

// Describe returns the auth adapter's description, for the RFC 9728 document. core.CodeNotFound without
// an adapter, core.CodeUnavailable when it fails.
func (a *Access) Describe(ctx context.Context) (auth.Description, error) {
	g := a.gate.Load()
	if g.adapter == nil {
		return auth.Description{}, noProvider()
	}
	return g.describe(ctx)
}

// Metadata returns the identity provider's RFC 8414 document unchanged. The caller caches it.
// core.CodeNotFound without a provider that has one, core.CodeUnavailable when the adapter fails.
func (a *Access) Metadata(ctx context.Context) (json.RawMessage, error) {
	g := a.gate.Load()
	if g.adapter == nil {
		return nil, noProvider()
	}
	doc, err := g.adapter.Metadata(ctx)
	switch {
	case errors.Is(err, plugins.ErrNotFound):
		return nil, noProvider()
	case err != nil:
		return nil, unavailable(err)
	}
	return doc, nil
}

func noProvider() error {
	return core.Errorf(core.CodeNotFound, "no identity provider is configured")
}
