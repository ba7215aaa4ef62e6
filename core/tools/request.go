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

// From is where a request comes from. The zero value is a caller without a client that apps could send
// requests or notifications to.
type From struct {
	Session   *Session       // the session it belongs to; nil when it belongs to none
	Asker     interact.Asker // sends requests of apps to the session's client while the call lasts; nil when that is not possible
	Stateless bool           // the client uses 2026-07-28: results may ask for input, and apps send no requests
}

// Request is one request about prompts or resources, with its params as the client wrote them.
type Request struct {
	Params json.RawMessage
	Notify func(rpc.Notification) // as Call.Notify
	From
}

// request returns a call of an app on behalf of a client. meta is the _meta of params.
func (n *Namespace) request(c core.Caller, method string, params, meta json.RawMessage, notify func(rpc.Notification), from From) interact.Call {
	call := interact.Call{Method: method, Params: params, Notify: notify, User: c.User.ID, Asker: from.Asker}
	switch {
	case from.Stateless:
		call.Client, call.Owner = n.stateless, c.Issuer+"\x00"+c.Subject
		call.Notify = withMinimumLevel(requestedLevel(meta), notify)
	case from.Session != nil:
		call.Client = from.Session.client
		if level := from.Session.level(); level > 0 {
			call.Notify = withMinimumLevel(level, notify)
		}
	}
	return call
}

// client returns the client of a request as apps see it; nil when they have no instance of their own for it.
func (n *Namespace) client(from From) *interact.Client {
	switch {
	case from.Stateless:
		return n.stateless
	case from.Session != nil:
		return from.Session.client
	}
	return nil
}

// GetPrompt is prompts/get: it returns the raw result of the app that has the prompt params.name.
// core.CodeBadRequest without a name, core.CodeNotFound when there is no such prompt, else the
// errors of Call.
func (n *Namespace) GetPrompt(ctx context.Context, c core.Caller, q Request) (json.RawMessage, error) {
	full, err := text(q.Params, "name")
	if err != nil {
		return nil, err
	}
	r := n.lists(c.Workspace.ID, q.From)
	prompt, ok := r.prompts[full]
	if !ok {
		return nil, noPrompt(full)
	}
	params, err := rawjson.Rename(q.Params, "name", prompt.Name)
	if err != nil {
		return nil, core.Errorf(core.CodeBadRequest, "params: %w", err)
	}
	result, err := n.callApp(ctx, c, prompt.Server, "prompts/get", prompt.Name, params, q)
	if err == nil && (n.takeLinks(c, q.From, r.uris, prompt.Server, result) || r.uris.mentions(result)) {
		result = relinkedMessages(r.uris, prompt.Server, result)
	}
	return result, err
}

// ReadResource is resources/read: it returns the raw result of the app that has the resource params.uri.
// core.CodeBadRequest without a URI, core.CodeResourceNotFound with the uri in its details when no app
// has it, else the errors of Call.
func (n *Namespace) ReadResource(ctx context.Context, c core.Caller, q Request) (json.RawMessage, error) {
	uri, err := text(q.Params, "uri")
	if err != nil {
		return nil, err
	}
	at, named, err := n.find(c, q.From, uri)
	if err != nil {
		return nil, err
	}
	params := q.Params
	if at.uri != uri {
		if params, err = rawjson.Rename(params, "uri", at.uri); err != nil {
			return nil, core.Errorf(core.CodeBadRequest, "params: %w", err)
		}
	}
	result, err := n.callApp(ctx, c, at.server, "resources/read", "", params, q)
	if err == nil && q.Session != nil && isView(at.uri) {
		q.Session.addView(at.server)
	}
	if err == nil && named {
		result = perAppContents(result, at.server)
	}
	return result, err
}

// Complete is completion/complete: it returns the raw result of the app whose prompt or resource template
// params.ref names. The errors are those of GetPrompt and ReadResource.
func (n *Namespace) Complete(ctx context.Context, c core.Caller, q Request) (json.RawMessage, error) {
	var in struct {
		Ref struct {
			Type string `json:"type"`
			Name string `json:"name"`
			URI  string `json:"uri"`
		} `json:"ref"`
	}
	if err := json.Unmarshal(q.Params, &in); err != nil {
		return nil, core.Errorf(core.CodeBadRequest, "params: %w", err)
	}
	r := n.lists(c.Workspace.ID, q.From)
	var server, member, own string
	switch in.Ref.Type {
	case "ref/prompt":
		prompt, ok := r.prompts[in.Ref.Name]
		if !ok {
			return nil, noPrompt(in.Ref.Name)
		}
		server, member, own = prompt.Server, "name", prompt.Name
	case "ref/resource":
		at, ok := r.uris.templates[in.Ref.URI]
		if !ok {
			var err error
			if at, _, err = n.find(c, q.From, in.Ref.URI); err != nil {
				return nil, err
			}
		}
		server, member, own = at.server, "uri", at.uri
	default:
		return nil, core.Errorf(core.CodeBadRequest, "params.ref.type is %.50q; it can be ref/prompt or ref/resource", in.Ref.Type)
	}
	params, err := rawjson.EditMember(q.Params, "ref", func(ref json.RawMessage) (json.RawMessage, error) { return rawjson.Rename(ref, member, own) })
	if err != nil {
		return nil, core.Errorf(core.CodeBadRequest, "params: %w", err)
	}
	return n.callApp(ctx, c, server, "completion/complete", "", params, q)
}

func (n *Namespace) callApp(ctx context.Context, c core.Caller, server, method, target string, params json.RawMessage, q Request) (json.RawMessage, error) {
	if !c.MayNameRoots() {
		params = orUnchanged(params, func() (json.RawMessage, error) {
			return rawjson.Edit(params, func(name string, value json.RawMessage) (json.RawMessage, error) {
				if strings.EqualFold(name, "inputResponses") { // some readers ignore the case
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
	call := n.request(c, method, params, meta, q.Notify, q.From)
	call.Target = target
	return n.apps.Call(ctx, c.Workspace.ID, server, call)
}

// raisesLogLevel reports whether a request without a session asks for more log messages than all before it:
// the level of apps of older revisions is then set first.
func (n *Namespace) raisesLogLevel(c core.Caller, call *Call) bool {
	if !call.Stateless || !bytes.Contains(call.Meta, []byte("logLevel")) {
		return false
	}
	level := requestedLevel(call.Meta)
	return level <= len(notify.LevelNames()) && n.sessions.lowersLevel(c.Workspace.ID, level)
}

// raiseLogLevel sets the log level of apps of older revisions to that of a request without a session, once.
func (n *Namespace) raiseLogLevel(ctx context.Context, c core.Caller, from From, meta json.RawMessage) {
	if !from.Stateless || !bytes.Contains(meta, []byte("logLevel")) {
		return
	}
	if level := requestedLevel(meta); level <= len(notify.LevelNames()) && n.sessions.requestLevel(c.Workspace.ID, level) {
		n.apps.SetLogLevel(ctx, c.Workspace.ID, n.sessions.level(c.Workspace.ID))
	}
}

func noPrompt(name string) error {
	return core.Errorf(core.CodeNotFound, "there is no prompt %.100q in this workspace", name)
}

// text returns a member of params that must be a string.
func text(params json.RawMessage, member string) (string, error) {
	var members map[string]json.RawMessage
	var value string
	if json.Unmarshal(params, &members) != nil || json.Unmarshal(members[member], &value) != nil || value == "" {
		return "", core.Errorf(core.CodeBadRequest, "params.%s must be a string that is not empty", member)
	}
	return value, nil
}

// perAppContents returns the result of reading a resource by a URI that names its app, with URIs of the
// same form in its contents.
func perAppContents(result json.RawMessage, server string) json.RawMessage {
	return orUnchanged(result, func() (json.RawMessage, error) {
		return rawjson.EditMember(result, "contents", func(list json.RawMessage) (json.RawMessage, error) {
			return rawjson.EditElements(list, func(content json.RawMessage) (json.RawMessage, error) {
				return rawjson.EditMember(content, "uri", func(value json.RawMessage) (json.RawMessage, error) {
					var uri string
					if err := json.Unmarshal(value, &uri); err != nil {
						return nil, err
					}
					return json.Marshal(resourceRef{server, uri}.listed())
				})
			})
		})
	})
}

// relinkedContent returns the result of tools/call with its URIs as they are listed.
func relinkedContent(p *resourceURIs, server string, result json.RawMessage) json.RawMessage {
	return orUnchanged(result, func() (json.RawMessage, error) {
		return rawjson.EditMember(result, "content", func(list json.RawMessage) (json.RawMessage, error) {
			return rawjson.EditElements(list, func(item json.RawMessage) (json.RawMessage, error) { return p.relinked(server, item) })
		})
	})
}

// relinkedMessages returns the result of prompts/get with its URIs as they are listed.
func relinkedMessages(p *resourceURIs, server string, result json.RawMessage) json.RawMessage {
	return orUnchanged(result, func() (json.RawMessage, error) {
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

// orUnchanged returns the edited answer, or the answer as it is when it does not have the form of MCP.
func orUnchanged(result json.RawMessage, edit func() (json.RawMessage, error)) json.RawMessage {
	if other, err := edit(); err == nil {
		return other
	}
	return result
}
