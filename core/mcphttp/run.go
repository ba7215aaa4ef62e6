package mcphttp

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ropewalk/ropewalk/core/stream"
)

// method answers one request with a raw result.
type method func(ctx context.Context, k *call) (json.RawMessage, error)

// run answers one request of the revision without sessions: plain JSON under a status of its own, or
// a stream when something comes before the result. A client that leaves cancels its call.
func (e *Endpoint) run(c *fiber.Ctx, k *call) error {
	if e.methodOf(k) == nil {
		f := &fault{status: fiber.StatusNotFound, code: jsonrpc.CodeMethodNotFound, message: "Method not found: " + clip(k.method)}
		return f.of(k.id).send(c)
	}
	if !e.live.begin(1) {
		return shuttingDown().of(k.id).send(c)
	}
	ctx, cancel := context.WithCancel(e.root)
	k.out = newExchange(1, false)
	k.out.left = cancel
	status := fiber.StatusOK
	t := e.launch(ctx, k)
	end := func() {
		defer e.live.finish(1)
		defer cancel()
		var text []byte
		text, status = e.respond(k, t)
		k.out.answer(text)
	}
	watch := time.AfterFunc(unwatched, k.out.signal)
	defer watch.Stop()
	var streamed bool
	if k.out.lands(t) {
		end()
		streamed = k.out.ready()
	} else {
		go end()
		streamed = k.out.watched(stream.WatchPeer(c.Context().Conn(), k.out.left))
	}
	if streamed {
		return k.out.send(c)
	}
	events, _ := k.out.take()
	uncached(c)
	return sendJSON(c, status, events[0].text)
}

// unwatched is how long a call is waited for before it is watched whether its client leaves: most have
// their answer by then.
const unwatched = 20 * time.Millisecond

// watched is ready, while a client that leaves is noticed.
func (x *exchange) watched(client *stream.Peer) (streamed bool) {
	defer client.Stop()
	return x.ready()
}

// respond ends a call and frames what it says.
func (e *Endpoint) respond(k *call, t task) (text []byte, status int) {
	result, err := e.land(k, task{rest: func() ([][]byte, error) {
		parts, err := t.rest()
		if err != nil {
			return nil, err
		}
		return inOnePart(e.finished(k, slices.Concat(parts...)))
	}})
	if err != nil {
		known := rpcErrorOf(err)
		return errorBody(k.id, known.Code, known.Message, known.Data), statusOf(known.Code)
	}
	return resultBody(k.id, result...), fiber.StatusOK
}

// statusOf is the HTTP status under which an error of this revision goes out (MCP 2026-07-28,
// basic/transports): those that say the request was wrong are the client's.
func statusOf(code int64) int {
	switch code {
	case jsonrpc.CodeMethodNotFound:
		return fiber.StatusNotFound
	case jsonrpc.CodeInvalidParams, mcp.CodeHeaderMismatch, mcp.CodeMissingRequiredClientCapabilities, mcp.CodeUnsupportedProtocolVersion:
		return fiber.StatusBadRequest
	}
	return fiber.StatusOK
}

// methodOf answers a call past the SDK.
func (e *Endpoint) methodOf(k *call) method {
	if k.modern {
		return e.modernMethod(k.method)
	}
	return e.method(k.method)
}

// modernMethod is a method of the revision without sessions, nil when it has no such method.
func (e *Endpoint) modernMethod(name string) method {
	if name == "server/discover" {
		return e.discover
	}
	return e.method(name)
}

// freshFor is how long a client may keep a list, in milliseconds: a change reaches those that listen
// at once, and the others after this.
const freshFor = "5000"

// finished completes a result as its revision wants it: every result says its type and who answers,
// and lists say for how long and for whom they hold. A list is one caller's, whatever the app said of
// it.
func (e *Endpoint) finished(k *call, result json.RawMessage) (json.RawMessage, error) {
	if !k.modern {
		return result, nil
	}
	fields, ok := object(result)
	if !ok {
		return nil, &jsonrpc.Error{Code: codeServer, Message: "the app answered with something else than an object"}
	}
	said := members{}
	if fields["resultType"] == nil {
		said.add("resultType", `"complete"`)
	}
	switch k.method {
	case "server/discover", "tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read":
		if string(fields["resultType"]) == `"input_required"` {
			break
		}
		if fields["ttlMs"] == nil {
			said.add("ttlMs", freshFor)
		}
		said.add("cacheScope", `"private"`)
	}
	return e.signed(fields["_meta"], said).into(result), nil
}

// signed adds, to the members that a result gets, its _meta with who answers (MCP 2026-07-28, basic,
// per-response protocol fields): this server is the client's peer, and not the app. A _meta that is no
// object stays as it is.
func (e *Endpoint) signed(meta json.RawMessage, said members) members {
	if _, ok := object(orEmpty(meta)); ok {
		who := members{}
		who.add(mcp.MetaKeyServerInfo, e.self)
		said.add("_meta", string(who.into(orEmpty(meta))))
	}
	return said
}
