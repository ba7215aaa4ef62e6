package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps"
	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/core/link"
	"github.com/ropewalk/ropewalk/core/rawjson"
	"github.com/ropewalk/ropewalk/core/rpc"
	"github.com/ropewalk/ropewalk/core/tracing"
)

// Request is a request about prompts or resources, with its params as the client wrote them.
type Request struct {
	Params json.RawMessage
	Notify func(rpc.Notification) // see Call.Notify
	From
}

// appRequest is a Request while perform processes it.
type appRequest struct {
	Request
	n         *Namespace
	caller    core.Caller
	method    string
	name      string          // the prompt or URI that the caller names
	arguments json.RawMessage // for the audit log

	// find sets server, target and params. read, which may be nil, processes the result. answer, if not nil,
	// answers the request instead of the app.
	find   func() error
	read   func(result json.RawMessage) json.RawMessage
	answer func(ctx context.Context) (json.RawMessage, error)

	server, target string          // the app, "" for none, and the prompt's own name for the span
	params         json.RawMessage // as the app receives them
	account        core.Account    // the account that the app is called with; zero for none
}

// startSpan implements request: only tool calls have their own span.
func (r *appRequest) startSpan(ctx context.Context) (context.Context, tracing.Span) {
	return ctx, tracing.Span{}
}

// admit implements request.
func (r *appRequest) admit(ctx context.Context) error {
	err := r.find()
	if err = r.await(ctx, err); err != nil || r.n.o.Accounts == nil || r.server == "" {
		return err
	}
	r.account, err = r.n.o.Accounts.Choose(ctx, r.caller, r.server, core.AccountWanted{ReadOnly: true, Chosen: r.Session.chosen()})
	return err
}

// await waits for the app that the request refers to, if the target was not found or if the URI was matched to another
// app. An app that is still starting has no lists to match. await then looks up the target again.
func (r *appRequest) await(ctx context.Context, found error) (err error) {
	code, server := core.CodeOf(found), appNamedBy(r.name)
	if server == "" || server == SystemServer || server == r.server || found != nil && code != core.CodeNotFound && code != core.CodeResourceNotFound {
		return found
	}
	if r.caller, err = r.n.await(ctx, r.caller, server, "", found); err != nil {
		return err
	}
	return r.find()
}

// appNamedBy returns the app that a prompt's name or a resource's URI refers to; "" if there is none.
func appNamedBy(name string) string {
	for _, prefix := range []string{perApp, viewScheme, skillScheme} {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			server, _, _ := strings.Cut(rest, "/")
			return server
		}
	}
	server, _, ok := strings.Cut(name, "__")
	if !ok {
		return ""
	}
	return server
}

// refusal completes the error of a call whose account lacks a login.
func (r *appRequest) refusal(err error) error {
	if r.account.ID == "" || core.CodeOf(err) != core.CodeLoginNeeded {
		return err
	}
	return r.n.o.Accounts.Needed(r.caller, r.account, err)
}

// record implements request.
func (r *appRequest) record() (method, target string, arguments json.RawMessage) {
	return r.method, r.name, r.arguments
}

// measure implements request.
func (r *appRequest) measure(callResult, error) {}

// send implements request.
func (r *appRequest) send(ctx context.Context) (json.RawMessage, callResult, error) {
	if r.answer != nil {
		result, err := r.answer(ctx)
		return result, callResult{}, r.refusal(err)
	}
	params := r.params
	if !r.caller.MayNameRoots() {
		params = orUnchanged(params, func() (json.RawMessage, error) {
			return rawjson.Edit(params, func(name string, value json.RawMessage) (json.RawMessage, error) {
				if strings.EqualFold(name, "inputResponses") { // some JSON decoders ignore case
					return withoutRoots(value), nil
				}
				return nil, nil
			})
		})
	}
	var meta json.RawMessage
	if r.Stateless {
		var fields struct {
			Meta json.RawMessage `json:"_meta"`
		}
		if json.Unmarshal(params, &fields) == nil {
			meta = fields.Meta
		}
	}
	r.n.lowerLogLevel(ctx, r.caller, r.From, meta)
	call := r.n.request(r.caller, r.method, params, meta, r.Notify, r.From)
	call.Target, call.Account = r.target, r.account.ID
	call.Recheck = r.recheck
	result, err := r.n.o.Apps.Call(ctx, r.caller.Workspace.ID, r.server, call)
	if err != nil {
		return nil, callResult{}, r.refusal(err)
	}
	if r.read != nil {
		result = r.read(result)
	}
	return result, callResult{needsInput: needsInput(result)}, nil
}

// recheck checks the request again after it has waited for its app, against the caller's rights and views, and the
// app's current lists.
func (r *appRequest) recheck(ctx context.Context) (err error) {
	server, params := r.server, r.params
	if r.caller, err = r.n.current(ctx, r.caller); err != nil {
		return err
	}
	if err = r.find(); err == nil && (r.server != server || !bytes.Equal(r.params, params)) {
		err = core.Errorf(core.CodeConflict, "%.200q changed while the request waited for its app; send it again", r.name)
	}
	return err
}

// needsInput reports whether a result asks for input.
func needsInput(result json.RawMessage) bool {
	return bytes.Contains(result, []byte("input_required")) && readResult(result).needsInput
}

// GetPrompt implements prompts/get. It returns the raw result of the app that has the prompt params.name. The error is
// core.CodeBadRequest if there is no name, and core.CodeNotFound if there is no such prompt. Other errors are those of
// Call.
func (n *Namespace) GetPrompt(ctx context.Context, c core.Caller, q Request) (json.RawMessage, error) {
	r := &appRequest{Request: q, n: n, caller: c, method: "prompts/get"}
	var lists *mergedLists
	r.find = func() (err error) {
		if r.name, err = text(q.Params, "name"); err != nil {
			return err
		}
		r.arguments = member(q.Params, "arguments")
		lists = n.lists(r.caller, q.From)
		prompt, ok := lists.prompts[r.name]
		if !ok {
			return noPrompt(r.name)
		}
		r.server, r.target = prompt.Server, prompt.Name
		if r.params, err = rawjson.Rename(q.Params, "name", prompt.Name); err != nil {
			return core.Errorf(core.CodeBadRequest, "params: %w", err)
		}
		return nil
	}
	r.read = func(result json.RawMessage) json.RawMessage {
		if n.takeLinks(c, q.From, lists.uris, r.server, result) || lists.uris.mentions(result) {
			return relinkedMessages(lists.uris, r.server, result)
		}
		return result
	}
	result, _, err := n.perform(ctx, c, r)
	return result, err
}

// ReadResource implements resources/read. It returns the raw result of the app that has the resource params.uri. The
// error is core.CodeBadRequest if there is no URI, and core.CodeResourceNotFound, with the uri in its details, if no
// app has it. Other errors are those of Call.
func (n *Namespace) ReadResource(ctx context.Context, c core.Caller, q Request) (json.RawMessage, error) {
	if uri, _ := text(q.Params, "uri"); uri != "" {
		if id, ok := core.KeptResultID(uri); ok {
			return n.readKept(ctx, c, id)
		}
		if skill, path, own := ownSkill(uri); own {
			return n.readOwnSkill(ctx, c, q, uri, skill, path)
		}
	}
	r := &appRequest{Request: q, n: n, caller: c, method: "resources/read"}
	var at resourceRef
	var named bool
	r.find = func() (err error) {
		if r.name, err = text(q.Params, "uri"); err != nil {
			return err
		}
		if at, named, err = n.find(r.caller, q.From, r.name); err != nil {
			return err
		}
		r.server, r.params = at.server, q.Params
		if at.uri != r.name {
			if r.params, err = rawjson.Rename(q.Params, "uri", at.uri); err != nil {
				return core.Errorf(core.CodeBadRequest, "params: %w", err)
			}
		}
		return nil
	}
	r.read = func(result json.RawMessage) json.RawMessage {
		if q.Session != nil && isView(at.uri) {
			q.Session.addView(at.server)
		}
		if named {
			if strings.HasPrefix(r.name, skillScheme) {
				return perAppContents(result, at.server, resourceRef.skillURI)
			}
			return perAppContents(result, at.server, resourceRef.listed)
		}
		return result
	}
	result, _, err := n.perform(ctx, c, r)
	return result, err
}

// Complete implements completion/complete. It returns the raw result of the app that has the prompt or resource
// template in params.ref. The errors are those of GetPrompt and ReadResource.
func (n *Namespace) Complete(ctx context.Context, c core.Caller, q Request) (json.RawMessage, error) {
	r := &appRequest{Request: q, n: n, caller: c, method: "completion/complete"}
	r.find = func() (err error) {
		var in struct {
			Ref struct {
				Type string `json:"type"`
				Name string `json:"name"`
				URI  string `json:"uri"`
			} `json:"ref"`
			Argument json.RawMessage `json:"argument"`
		}
		if json.Unmarshal(q.Params, &in) != nil {
			return core.Errorf(core.CodeBadRequest, "params.ref must be an object whose type, name and uri are strings")
		}
		r.arguments = in.Argument
		var member, own string
		switch in.Ref.Type {
		case "ref/prompt":
			r.name = in.Ref.Name
			prompt, ok := n.lists(r.caller, q.From).prompts[r.name]
			if !ok {
				return noPrompt(r.name)
			}
			r.server, member, own = prompt.Server, "name", prompt.Name
		case "ref/resource":
			r.name = in.Ref.URI
			at, ok := n.lists(r.caller, q.From).uris.templates[r.name]
			if !ok {
				if at, _, err = n.find(r.caller, q.From, r.name); err != nil {
					return err
				}
			}
			r.server, member, own = at.server, "uri", at.uri
		default:
			return core.Errorf(core.CodeBadRequest, "params.ref.type is %.50q; it must be ref/prompt or ref/resource", in.Ref.Type)
		}
		r.params, err = rawjson.EditMember(q.Params, "ref", func(ref json.RawMessage) (json.RawMessage, error) { return rawjson.Rename(ref, member, own) })
		if err != nil {
			return core.Errorf(core.CodeBadRequest, "params: %w", err)
		}
		return nil
	}
	result, _, err := n.perform(ctx, c, r)
	return result, err
}

// ReadView reads a view of an app for a browser. See apps.Manager.Resource for uri and the errors.
func (n *Namespace) ReadView(ctx context.Context, c core.Caller, server, uri string) (view apps.Resource, err error) {
	r := &appRequest{n: n, caller: c, method: "resources/read", name: resourceRef{server, uri}.listed(), server: server, target: uri}
	r.find = func() error {
		if !n.lists(r.caller, From{}).shown.ShowsApp(server) {
			return core.Errorf(core.CodeNotFound, "no app %q in this workspace", server)
		}
		return nil
	}
	r.answer = func(ctx context.Context) (_ json.RawMessage, err error) {
		call := &interact.Call{Request: link.Request{Sender: c.User.ID}, Account: r.account.ID, Recheck: r.recheck}
		view, err = n.o.Apps.Resource(ctx, c.Workspace.ID, server, uri, call)
		return nil, err
	}
	_, _, err = n.perform(ctx, c, r)
	return view, err
}

// lowerLogLevel lowers the minimum log level of apps with older MCP revisions if a stateless request asks for a lower
// one than all requests before it.
func (n *Namespace) lowerLogLevel(ctx context.Context, c core.Caller, from From, meta json.RawMessage) {
	if !from.Stateless || !bytes.Contains(meta, []byte("logLevel")) {
		return
	}
	if level := requestedLevel(meta); level <= len(apps.LevelNames()) && n.sessions.requestLevel(c.Workspace.ID, level) {
		n.o.Apps.SetLogLevel(ctx, c.Workspace.ID, n.sessions.level(c.Workspace.ID))
	}
}

func noPrompt(name string) error {
	return core.Errorf(core.CodeNotFound, "there is no prompt %.100q in this workspace", name)
}

// member returns a member of params, or nil if it is absent.
func member(params json.RawMessage, name string) json.RawMessage {
	at, err := rawjson.Find(params, name)
	if err != nil || at.Empty() {
		return nil
	}
	return at.In(params)
}

// text returns a member of params that must be a non-empty string.
func text(params json.RawMessage, member string) (string, error) {
	var members map[string]json.RawMessage
	var value string
	if json.Unmarshal(params, &members) != nil || json.Unmarshal(members[member], &value) != nil || value == "" {
		return "", core.Errorf(core.CodeBadRequest, "params.%s must be a non-empty string", member)
	}
	return value, nil
}

// perAppContents replaces the URIs in the contents of a resource with URIs that contain the app, in the form that
// listed returns. It is for a resource that was read by such a URI.
func perAppContents(result json.RawMessage, server string, listed func(resourceRef) string) json.RawMessage {
	return orUnchanged(result, func() (json.RawMessage, error) {
		return rawjson.EditMember(result, "contents", func(list json.RawMessage) (json.RawMessage, error) {
			return rawjson.EditElements(list, func(content json.RawMessage) (json.RawMessage, error) {
				return rawjson.EditMember(content, "uri", func(value json.RawMessage) (json.RawMessage, error) {
					var uri string
					if err := json.Unmarshal(value, &uri); err != nil {
						return nil, err
					}
					return json.Marshal(listed(resourceRef{server, uri}))
				})
			})
		})
	})
}

// relinkedContent replaces the URIs in a tools/call result with those under which the resources are listed.
func relinkedContent(p *resourceURIs, server string, result json.RawMessage) json.RawMessage {
	return orUnchanged(result, func() (json.RawMessage, error) {
		return rawjson.EditMember(result, "content", func(list json.RawMessage) (json.RawMessage, error) {
			return rawjson.EditElements(list, func(item json.RawMessage) (json.RawMessage, error) { return p.relinked(server, item) })
		})
	})
}

// relinkedMessages replaces the URIs in a prompts/get result with those under which the resources are listed.
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

// orUnchanged returns the edited result, or the result unchanged if it does not have the form that MCP requires.
func orUnchanged(result json.RawMessage, edit func() (json.RawMessage, error)) json.RawMessage {
	if other, err := edit(); err == nil {
		return other
	}
	return result
}
