package mcphttp

import (
	"context"
	"encoding/json"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/mcphttp/message"
	"github.com/ropewalk/ropewalk/core/mcphttp/session"
	"github.com/ropewalk/ropewalk/core/rawjson"
	"github.com/ropewalk/ropewalk/core/rpc"
	"github.com/ropewalk/ropewalk/core/tools"
)

// from is where a call comes from: a session, whose client can be asked while the call runs, or a client
// without one, which is asked by results only.
func (k *call) from() tools.From {
	if k.session == nil {
		return tools.From{Stateless: true}
	}
	return tools.From{Session: k.session.Tools, Asker: asker{k}}
}

// asker puts an app's questions to the client of a call.
type asker struct{ call *call }

// Ask implements interact.Asker.
func (a asker) Ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	return a.AskWithProgress(ctx, method, params, nil)
}

// AskWithProgress implements interact.ProgressAsker.
func (a asker) AskWithProgress(ctx context.Context, method string, params json.RawMessage, notify func(rpc.Notification)) (json.RawMessage, error) {
	return a.call.session.Ask(ctx, &a.call.Call, session.Question{Method: method, Params: params, Notify: notify})
}

// passOn gives a request to the app it belongs to.
func (e *Endpoint) passOn(k *call, to func(context.Context, core.Caller, tools.Request) (json.RawMessage, error)) pending {
	return pending{wait: func() ([][]byte, error) {
		result, err := to(&k.context, k.caller, tools.Request{Params: message.OrEmpty(k.Params), Notify: k.notify, From: k.from()})
		if err != nil {
			return nil, e.refusal(&k.context, k, k.Method, err)
		}
		return onePart(result, nil)
	}}
}

// list answers one of the lists that are not tools. It is one page: apps list no more than fits.
func (e *Endpoint) list(k *call, kind core.Kind) ([][]byte, error) {
	if k.Param("cursor") != nil {
		return nil, invalidParams("cursor is not one that %s gave; start again without it", k.Method)
	}
	return [][]byte{[]byte(`{"` + kind + `":`), e.o.Tools.ListJSON(k.caller, k.from(), kind), {'}'}}, nil
}

// aboutResource is resources/subscribe and resources/unsubscribe: updates reach this session alone, on
// its GET stream.
func (e *Endpoint) aboutResource(k *call, do func(context.Context, string) error) pending {
	uri := rawjson.Text(k.Param("uri"))
	if uri == "" {
		return done(nil, invalidParams("params.uri must be the URI of a resource"))
	}
	return e.change(k, func() error { return do(&k.context, uri) })
}

// setLevel is logging/setLevel: which log messages of apps this session wants.
func (e *Endpoint) setLevel(k *call) pending {
	level := rawjson.Text(k.Param("level"))
	return e.change(k, func() error {
		if err := k.session.Tools.SetLevel(&k.context, level); err != nil {
			return err
		}
		k.session.SetLevel(level)
		e.recordState(&k.context, k.session)
		return nil
	})
}

// recordState writes what changed of a session for the server that takes it over. Where that fails the session
// goes on, and loses the change with its server.
func (e *Endpoint) recordState(ctx context.Context, s *session.Session) {
	if !e.writer.Replaces() {
		return
	}
	unlock, err := e.moving.Lock(ctx, s.ID)
	if err != nil {
		return
	}
	defer unlock()
	lease := s.Lease()
	next := s.RecordFor(lease)
	if _, err := e.writer.Replace(ctx, next, lease, func() { s.Keep(next) }); err != nil {
		e.log.Warn("log level of a session not recorded", "error", err)
	}
}

// change is a call whose result is empty.
func (e *Endpoint) change(k *call, do func() error) pending {
	return pending{wait: func() ([][]byte, error) {
		if err := do(); err != nil {
			return nil, e.refusal(&k.context, k, k.Method, err)
		}
		return onePart(empty(), nil)
	}}
}

func empty() json.RawMessage { return json.RawMessage("{}") }
