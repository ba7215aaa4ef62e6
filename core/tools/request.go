package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/core/apps/notify"
	"github.com/ropewalk/ropewalk/core/rawjson"
	"github.com/ropewalk/ropewalk/core/rpc"
)

// From is where a request comes from. The zero value is a caller without a client that could be
// asked or told anything.
type From struct {
	Session   *Session       // the session it belongs to; nil when it belongs to none
	Asker     interact.Asker // asks the session's client while the request is in flight; nil when it cannot be asked
	Stateless bool           // the client speaks 2026-07-28: results may ask for input, and nobody is asked otherwise
}

// Request is one request about what apps offer, its params as the client wrote them.
type Request struct {
	Params json.RawMessage
	Notify func(rpc.Notification) // as Call.Notify
	From
}

// request is a call of an app on behalf of a client. meta is the _meta of params.
func (n *Namespace) request(c core.Caller, method string, params, meta json.RawMessage, notify func(rpc.Notification), from From) interact.Call {
	call := interact.Call{Method: method, Params: params, Notify: notify, Asker: from.Asker}
	switch {
	case from.Stateless:
		call.Client, call.Owner = n.stateless, c.Issuer+"\x00"+c.Subject
		call.Notify = atLeast(levelOf(meta), notify)
	case from.Session != nil:
		call.Client = from.Session.client
		if level := from.Session.level(); level > 0 {
			call.Notify = atLeast(level, notify)
		}
	}
	return call
}

// GetPrompt is prompts/get: the raw result of the app whose prompt params.name is.
// core.CodeBadRequest without a name, core.CodeNotFound when there is no such prompt, else the
// errors of Call.
func (n *Namespace) GetPrompt(ctx context.Context, c core.Caller, q Request) (json.RawMessage, error) {
	full, err := text(q.Params, "name")
	if err != nil {
		return nil, err
	}
	r := n.render(c.Workspace.ID)
	prompt, ok := r.prompts[full]
	if !ok {
		return nil, noPrompt(full)
	}
	params, err := rawjson.Rename(q.Params, "name", prompt.Name)
	if err != nil {
		return nil, core.Errorf(core.CodeBadRequest, "params: %w", err)
	}
	result, err := n.ask(ctx, c, prompt.Server, "prompts/get", params, q)
	if err == nil && r.places.mentions(result) {
		result = relinkedMessages(r.places, prompt.Server, result)
	}
	return result, err
}

// ReadResource is resources/read: the raw result of the app that params.uri leads to.
// core.CodeBadRequest without a URI, core.CodeResourceNotFound with the uri in its details when it
// leads to no app, else the errors of Call.
func (n *Namespace) ReadResource(ctx context.Context, c core.Caller, q Request) (json.RawMessage, error) {
	uri, err := text(q.Params, "uri")
	if err != nil {
		return nil, err
	}
	at, named, err := n.render(c.Workspace.ID).places.find(uri)
	if err != nil {
		return nil, err
	}
	params := q.Params
	if named {
		if params, err = rawjson.Rename(params, "uri", at.uri); err != nil {
			return nil, core.Errorf(core.CodeBadRequest, "params: %w", err)
		}
	}
	result, err := n.ask(ctx, c, at.server, "resources/read", params, q)
	if err == nil && q.Session != nil && isView(at.uri) {
		q.Session.view(at.server)
	}
	if err == nil && named {
		result = perAppContents(result, at.server)
	}
	return result, err
}

// Complete is completion/complete: the raw result of the app whose prompt or resource template
// params.ref is. The errors are those of GetPrompt and ReadResource.
func (n *Namespace) Complete(ctx context.Context, c core.Caller, q Request) (json.RawMessage, error) {
	var said struct {
		Ref struct {
			Type string `json:"type"`
			Name string `json:"name"`
			URI  string `json:"uri"`
		} `json:"ref"`
	}
	if err := json.Unmarshal(q.Params, &said); err != nil {
		return nil, core.Errorf(core.CodeBadRequest, "params: %w", err)
	}
	r := n.render(c.Workspace.ID)
	var server, member, own string
	switch said.Ref.Type {
	case "ref/prompt":
		prompt, ok := r.prompts[said.Ref.Name]
		if !ok {
			return nil, noPrompt(said.Ref.Name)
		}
		server, member, own = prompt.Server, "name", prompt.Name
	case "ref/resource":
		at, ok := r.places.templates[said.Ref.URI]
		if !ok {
			var err error
			if at, _, err = r.places.find(said.Ref.URI); err != nil {
				return nil, err
			}
		}
		server, member, own = at.server, "uri", at.uri
	default:
		return nil, core.Errorf(core.CodeBadRequest, "params.ref.type is %.50q; it can be ref/prompt or ref/resource", said.Ref.Type)
	}
	params, err := rawjson.EditMember(q.Params, "ref", func(ref json.RawMessage) (json.RawMessage, error) { return rawjson.Rename(ref, member, own) })
	if err != nil {
		return nil, core.Errorf(core.CodeBadRequest, "params: %w", err)
	}
	return n.ask(ctx, c, server, "completion/complete", params, q)
}

func (n *Namespace) ask(ctx context.Context, c core.Caller, server, method string, params json.RawMessage, q Request) (json.RawMessage, error) {
	if !c.MayNameRoots() {
		params = orAsItIs(params, func() (json.RawMessage, error) {
			return rawjson.Edit(params, func(name string, value json.RawMessage) (json.RawMessage, error) {
				if strings.EqualFold(name, "inputResponses") { // not every reader minds the case
					return withoutRoots(value), nil
				}
				return nil, nil
			})
		})
	}
	var meta json.RawMessage
	if q.Stateless {
		var said struct {
			Meta json.RawMessage `json:"_meta"`
		}
		if json.Unmarshal(params, &said) == nil {
			meta = said.Meta
		}
	}
	n.raiseLogLevel(ctx, c, q.From, meta)
	return n.apps.Call(ctx, c.Workspace.ID, server, n.request(c, method, params, meta, q.Notify, q.From))
}

// raisesLogLevel reports whether a request without a session wants to see more log messages than any
// before it: the apps of the older revisions are told first, by a message of its own.
func (n *Namespace) raisesLogLevel(c core.Caller, call *Call) bool {
	if !call.Stateless || !bytes.Contains(call.Meta, []byte("logLevel")) {
		return false
	}
	level := levelOf(call.Meta)
	return level <= len(notify.LevelNames()) && n.boards.wouldPass(c.Workspace.ID, level)
}

// raiseLogLevel has the apps of the older revisions log as much as a request without a session wants to
// see. They are told once.
func (n *Namespace) raiseLogLevel(ctx context.Context, c core.Caller, from From, meta json.RawMessage) {
	if !from.Stateless || !bytes.Contains(meta, []byte("logLevel")) {
		return
	}
	if level := levelOf(meta); level <= len(notify.LevelNames()) && n.boards.pass(c.Workspace.ID, level) {
		n.apps.SetLogLevel(ctx, c.Workspace.ID, n.boards.level(c.Workspace.ID))
	}
}

func noPrompt(name string) error {
	return core.Errorf(core.CodeNotFound, "there is no prompt %.100q in this workspace", name)
}

// text is a member of params that must be a string.
func text(params json.RawMessage, member string) (string, error) {
	var members map[string]json.RawMessage
	var value string
	if json.Unmarshal(params, &members) != nil || json.Unmarshal(members[member], &value) != nil || value == "" {
		return "", core.Errorf(core.CodeBadRequest, "params.%s must be a string that is not empty", member)
	}
	return value, nil
}

// perAppContents is the result of reading a resource by a URI that names its app, with its contents named alike.
func perAppContents(result json.RawMessage, server string) json.RawMessage {
	return orAsItIs(result, func() (json.RawMessage, error) {
		return rawjson.EditMember(result, "contents", func(list json.RawMessage) (json.RawMessage, error) {
			return rawjson.EditElements(list, func(content json.RawMessage) (json.RawMessage, error) {
				return rawjson.EditMember(content, "uri", func(value json.RawMessage) (json.RawMessage, error) {
					var uri string
					if err := json.Unmarshal(value, &uri); err != nil {
						return nil, err
					}
					return json.Marshal(place{server, uri}.listed())
				})
			})
		})
	})
}

// relinkedContent and relinkedMessages are the results of tools/call and prompts/get with the URIs
// in them as they are listed.
func relinkedContent(p *places, server string, result json.RawMessage) json.RawMessage {
	return orAsItIs(result, func() (json.RawMessage, error) {
		return rawjson.EditMember(result, "content", func(list json.RawMessage) (json.RawMessage, error) {
			return rawjson.EditElements(list, func(item json.RawMessage) (json.RawMessage, error) { return p.relinked(server, item) })
		})
	})
}

func relinkedMessages(p *places, server string, result json.RawMessage) json.RawMessage {
	return orAsItIs(result, func() (json.RawMessage, error) {
		return rawjson.EditMember(result, "messages", func(list json.RawMessage) (json.RawMessage, error) {
			return rawjson.EditElements(list, func(message json.RawMessage) (json.RawMessage, error) {
				return rawjson.EditMember(message, "content", func(item json.RawMessage) (json.RawMessage, error) {
					if bytes.HasPrefix(bytes.TrimSpace(item), []byte{'{'}) {
						return p.relinked(server, item)
					}
					return item, nil
				})
			})
		})
	})
}

// orAsItIs leaves an answer alone that is not what MCP says: its reader will judge.
func orAsItIs(result json.RawMessage, edit func() (json.RawMessage, error)) json.RawMessage {
	if other, err := edit(); err == nil {
		return other
	}
	return result
}
