package mcphttp

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/gofiber/fiber/v2"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/rpc"
	"github.com/ropewalk/ropewalk/core/stream"
	"github.com/ropewalk/ropewalk/core/tools"
)

// listener is one subscriptions/listen: what its client wants to be told, and where.
type listener struct {
	*queue
	id    json.RawMessage // of the request, which tags everything that is said here
	kinds []core.Kind     // whose changes it wants
}

// wish is the notifications of a request, and of what it is granted.
type wish struct {
	Tools         bool     `json:"toolsListChanged,omitempty"`
	Prompts       bool     `json:"promptsListChanged,omitempty"`
	Resources     bool     `json:"resourcesListChanged,omitempty"`
	Subscriptions []string `json:"resourceSubscriptions,omitempty"`
}

// listen is subscriptions/listen: one stream, first what was granted, then what happens, until the
// client or the server goes. Where nothing was granted there is nothing to wait for.
func (e *Endpoint) listen(c *fiber.Ctx, caller core.Caller, m message) error {
	var wanted *wish
	if json.Unmarshal(orEmpty(m.fields["notifications"]), &wanted) != nil || m.fields["notifications"] == nil || wanted == nil {
		return badRequest(jsonrpc.CodeInvalidParams, "params.notifications must be an object that says what to be told").of(m.id).send(c)
	}
	if f := e.live.sit(); f != nil {
		return f.of(m.id).send(c)
	}
	l := &listener{queue: newQueue(), id: m.id, kinds: wanted.kinds()}
	e.hub.join(caller.Workspace.ID, l)
	place := e.o.Tools.Open(caller, tools.SessionOptions{Notify: func(n rpc.Notification) {
		if n.Method == "notifications/resources/updated" {
			l.push(notificationBody(n.Method, l.tagged(n.Params)))
		}
	}})
	wanted.Subscriptions = e.follow(place, wanted.Subscriptions)
	over := func() {
		e.hub.leave(caller.Workspace.ID, l)
		closePlace(place)
		e.live.rise()
	}
	said, _ := json.Marshal(map[string]any{"notifications": wanted}) // bools and strings always marshal
	first := notificationBody("notifications/subscriptions/acknowledged", l.tagged(said))
	last := resultBody(l.id, l.tagged(e.signed(nil, members{{"resultType", `"complete"`}}).into(empty())))
	c.Set(fiber.HeaderCacheControl, "no-cache, no-transform")
	c.Set(fiber.HeaderConnection, "close") // a client whose stream ends goes on, on another connection
	err := e.o.Streams.Open(c, stream.Standing, func(ctx context.Context, w *stream.Writer) {
		defer over()
		if w.Event("message", first) != nil {
			return
		}
		if len(l.kinds)+len(wanted.Subscriptions) > 0 {
			l.copyTo(ctx, w)
		}
		_ = w.Event("message", last) // fails when the client has gone
	})
	if err != nil {
		over()
		return e.denied(err).of(m.id).send(c)
	}
	return nil
}

// kinds are the lists whose changes are wanted. Templates change with resources.
func (w *wish) kinds() (kinds []core.Kind) {
	if w.Tools {
		kinds = append(kinds, core.KindTools)
	}
	if w.Prompts {
		kinds = append(kinds, core.KindPrompts)
	}
	if w.Resources {
		kinds = append(kinds, core.KindResources)
	}
	return kinds
}

// follow subscribes to resources, and returns which of them it could subscribe to.
func (e *Endpoint) follow(place *tools.Session, uris []string) (granted []string) {
	ctx, cancel := context.WithTimeout(e.root, gateTimeout)
	defer cancel()
	for _, uri := range uris {
		if err := place.Subscribe(ctx, uri); err != nil {
			e.log.Debug("A resource cannot be subscribed to", "error", err)
			continue
		}
		granted = append(granted, uri)
	}
	return granted
}

// changed tells of a list that changed, if that is wanted.
func (l *listener) changed(kind core.Kind) {
	if slices.Contains(l.kinds, kind) {
		l.push(notificationBody(changeOf(kind), l.tagged(empty())))
	}
}

// tagged puts the request's id into params' _meta.
func (l *listener) tagged(params json.RawMessage) json.RawMessage {
	fields, ok := object(orEmpty(params))
	if !ok {
		return params
	}
	meta := members{}
	meta.add(mcp.MetaKeySubscriptionID, string(l.id))
	said := members{}
	said.add("_meta", string(meta.into(orEmpty(fields["_meta"]))))
	return said.into(orEmpty(params))
}

// changeOf is the notification that tells of a list that changed.
func changeOf(kind core.Kind) string {
	return "notifications/" + string(kind) + "/list_changed"
}
