package mcphttp

import (
	"context"
	"encoding/json"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/rpc"
	"github.com/ropewalk/ropewalk/core/tools"
)

// from is where a call comes from: its session, whose client can be asked while the call runs, or a
// client without one, who is never asked but by results.
func (k *call) from() tools.From {
	if k.modern {
		return tools.From{Stateless: true}
	}
	return tools.From{Session: k.session.place, Asker: asker{k}}
}

// asker puts an app's questions to the client of a call.
type asker struct{ call *call }

// Ask implements apps.Asker.
func (a asker) Ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	return a.AskWithProgress(ctx, method, params, nil)
}

// AskWithProgress implements apps.Hearer.
func (a asker) AskWithProgress(ctx context.Context, method string, params json.RawMessage, heard func(rpc.Notification)) (json.RawMessage, error) {
	return a.call.session.ask(ctx, a.call, question{method, params, heard})
}

// passOn gives a request to the app it belongs to.
func (e *Endpoint) passOn(to func(context.Context, core.Caller, tools.Request) (json.RawMessage, error)) method {
	return func(ctx context.Context, k *call) (json.RawMessage, error) {
		result, err := to(ctx, k.caller, tools.Request{Params: orEmpty(k.params), Notify: k.notify, From: k.from()})
		if err != nil {
			return nil, e.refusal(ctx, k, k.method, err)
		}
		return result, nil
	}
}

// lister answers one of the lists that are not tools. It is one page: apps list no more than fits.
func (e *Endpoint) lister(kind core.Kind) method {
	return func(_ context.Context, k *call) (json.RawMessage, error) {
		if k.fields["cursor"] != nil {
			return nil, invalidParams("cursor is not one that %s gave; start again without it", k.method)
		}
		list := e.o.Tools.ListJSON(k.caller, kind)
		raw := make([]byte, 0, len(list)+len(kind)+8)
		raw = append(append(append(raw, `{"`...), kind...), `":`...)
		return append(append(raw, list...), '}'), nil
	}
}

// subscribe is resources/subscribe: updates reach this session alone, on its GET stream.
func (e *Endpoint) subscribe(ctx context.Context, k *call) (json.RawMessage, error) {
	return e.aboutResource(ctx, k, k.session.place.Subscribe)
}

// unsubscribe is resources/unsubscribe.
func (e *Endpoint) unsubscribe(ctx context.Context, k *call) (json.RawMessage, error) {
	return e.aboutResource(ctx, k, k.session.place.Unsubscribe)
}

func (e *Endpoint) aboutResource(ctx context.Context, k *call, do func(context.Context, string) error) (json.RawMessage, error) {
	var uri string
	if json.Unmarshal(orEmpty(k.fields["uri"]), &uri) != nil || uri == "" {
		return nil, invalidParams("params.uri must be the URI of a resource")
	}
	if err := do(ctx, uri); err != nil {
		return nil, e.refusal(ctx, k, k.method, err)
	}
	return empty(), nil
}

// setLevel is logging/setLevel: which log messages of apps this session wants.
func (e *Endpoint) setLevel(ctx context.Context, k *call) (json.RawMessage, error) {
	var level string
	_ = json.Unmarshal(orEmpty(k.fields["level"]), &level) // what is no string is no level
	if err := k.session.place.SetLevel(ctx, level); err != nil {
		return nil, e.refusal(ctx, k, k.method, err)
	}
	return empty(), nil
}

func empty() json.RawMessage { return json.RawMessage("{}") }
