package mcphttp

import (
	"context"
	"encoding/json"

	"github.com/ropewalk/ropewalk/core"
)

// method is a request that both kinds of revisions answer alike, nil when there is no such method.
func (e *Endpoint) method(name string) method {
	switch name {
	case "tools/list":
		return plain(func(_ context.Context, k *call) (any, error) { return e.listTools(k) })
	case "tools/call":
		return plain(func(ctx context.Context, k *call) (any, error) { return e.callTool(ctx, k) })
	case "prompts/list":
		return e.lister(core.KindPrompts)
	case "resources/list":
		return e.lister(core.KindResources)
	case "resources/templates/list":
		return e.lister(core.KindTemplates)
	case "prompts/get":
		return e.passOn(e.o.Tools.GetPrompt)
	case "resources/read":
		return e.passOn(e.o.Tools.ReadResource)
	case "completion/complete":
		return e.passOn(e.o.Tools.Complete)
	}
	return nil
}

// sessionMethod is a method of the revisions with sessions, nil when the SDK answers it.
func (e *Endpoint) sessionMethod(name string) method {
	switch name {
	case "resources/subscribe":
		return e.subscribe
	case "resources/unsubscribe":
		return e.unsubscribe
	case "logging/setLevel":
		return e.setLevel
	}
	return e.method(name)
}

// plain takes a result apart that is made for the SDK.
func plain(of func(context.Context, *call) (any, error)) method {
	return func(ctx context.Context, k *call) (json.RawMessage, error) {
		result, err := of(ctx, k)
		if err != nil {
			return nil, err
		}
		if raw, ok := result.(json.Marshaler); ok {
			return raw.MarshalJSON()
		}
		return json.Marshal(result)
	}
}
