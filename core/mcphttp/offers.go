package mcphttp

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/gofiber/fiber/v2"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/mcphttp/session"
	"github.com/ropewalk/ropewalk/core/rawjson"
	"github.com/ropewalk/ropewalk/core/rpc"
	"github.com/ropewalk/ropewalk/core/tools"
)

// from returns where a call comes from: a session, whose client can be asked questions while the call runs, or a client
// without one, which can be asked only through results.
func (k *call) from() tools.From {
	if k.session == nil {
		return tools.From{Stateless: true, Surface: k.surface, ReadsOn: k.readsOn}
	}
	return tools.From{Session: k.session.Tools, Asker: asker{k}, Surface: k.surface, ReadsOn: k.readsOn}
}

// headerSurface names the surface that a client wants. The query parameter surface does the same, because some clients
// cannot send custom headers.
const headerSurface = "X-Tools-Surface"

// chooseSurface sets the surface of a list: the one that the request chooses, or else the configured one. It also
// records whether the client asks for results that fit its limit.
func (e *Endpoint) chooseSurface(c *fiber.Ctx, k *call) *fault {
	if k.Method != "tools/list" {
		return nil
	}
	k.readsOn = tools.AsksToFit(k.Param("_meta"))
	k.surface = tools.Surface(cmp.Or(c.Get(headerSurface), c.Query("surface"), e.o.Surface, string(tools.SurfaceFull)))
	if k.surface != tools.SurfaceFull && k.surface != tools.SurfaceSearch {
		message := fmt.Sprintf("%s, or the query parameter surface, is %q; it can be %s or %s", headerSurface, clip(string(k.surface)), tools.SurfaceFull, tools.SurfaceSearch)
		return badRequest(jsonrpc.CodeInvalidRequest, message).of(k.Message.ID)
	}
	return nil
}

// asker sends an app's questions to the client of a call.
type asker struct{ call *call }

// Ask implements interact.Asker.
func (a asker) Ask(ctx context.Context, q rpc.Question) (json.RawMessage, error) {
	return a.call.session.Ask(ctx, &a.call.Call, q)
}

// passOn forwards a request to the app it belongs to.
func (e *Endpoint) passOn(k *call, to func(context.Context, core.Caller, tools.Request) (json.RawMessage, error)) ([][]byte, error) {
	result, err := to(k.context, k.caller, tools.Request{Params: orEmpty(k.Params), Notify: k.notify, From: k.from()})
	if err != nil {
		return nil, e.refusal(k, k.Method, err)
	}
	return onePart(result, nil)
}

// subscription handles resources/subscribe and resources/unsubscribe. Updates reach only this session, on its GET
// stream.
func (e *Endpoint) subscription(k *call, do func(context.Context, string) error) ([][]byte, error) {
	uri := rawjson.Text(k.Param("uri"))
	if uri == "" {
		return nil, invalidParams("params.uri must be the URI of a resource")
	}
	return e.done(k, do(k.context, uri))
}

// setLevel handles logging/setLevel, which chooses the app log messages that this session receives.
func (e *Endpoint) setLevel(k *call) ([][]byte, error) {
	level := rawjson.Text(k.Param("level"))
	err := k.session.Tools.SetLevel(k.context, level)
	if err == nil {
		k.session.SetLevel(level)
		e.recordState(k.context, k.session)
	}
	return e.done(k, err)
}

// done returns an empty result, or the JSON-RPC error for err.
func (e *Endpoint) done(k *call, err error) ([][]byte, error) {
	if err != nil {
		return nil, e.refusal(k, k.Method, err)
	}
	return onePart(empty(), nil)
}

// recordState writes a session's changed state to the store, for a server that takes the session over. If that fails,
// the session continues, and the change is lost with this server.
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
		e.log.Warn("could not record a session's log level", "error", err)
	}
}

func empty() json.RawMessage { return json.RawMessage("{}") }
