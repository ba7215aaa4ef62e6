package mcphttp

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/gofiber/fiber/v2"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/mcphttp/sse"
	"github.com/ropewalk/ropewalk/core/rawjson"
	"github.com/ropewalk/ropewalk/core/rpc"
	"github.com/ropewalk/ropewalk/core/stream"
	"github.com/ropewalk/ropewalk/core/tools"
)

// listener is one subscriptions/listen request: the changes that the client wants to receive, and the stream on which
// they are sent.
type listener struct {
	*sse.Queue
	id    json.RawMessage // the request's ID, which tags every message sent here
	kinds []core.Kind     // the lists whose changes it wants
}

// listenFilter contains the notifications that a request asks for, or is granted.
type listenFilter struct {
	Tools         bool     `json:"toolsListChanged,omitempty"`
	Prompts       bool     `json:"promptsListChanged,omitempty"`
	Resources     bool     `json:"resourcesListChanged,omitempty"`
	Subscriptions []string `json:"resourceSubscriptions,omitempty"`

	TaskIDs []string `json:"taskIds,omitempty"` // extensionTasks
}

// listen handles subscriptions/listen. It opens a stream, which first lists the granted notifications. The
// notifications follow, until the client disconnects or the server shuts down. If nothing was granted, the stream ends
// immediately.
func (e *Endpoint) listen(c *fiber.Ctx, caller core.Caller, m Message) error {
	var wanted *listenFilter
	if json.Unmarshal(orEmpty(m.Param("notifications")), &wanted) != nil || m.Param("notifications") == nil || wanted == nil {
		return badRequest(rpc.CodeInvalidParams, "params.notifications must be an object that lists the changes to send").of(m.ID).send(c)
	}
	if len(wanted.TaskIDs) > 0 && !m.supportsTasks() {
		return undeclared().of(m.ID).send(c)
	}
	if err := e.live.Listen(caller.User.ID); err != nil {
		return refusedBySession(err, "too many clients are listening on this server; try again later").of(m.ID).send(c)
	}
	l := &listener{Queue: sse.NewQueue(), id: m.ID, kinds: wanted.kinds()}
	e.hub.join(caller, tools.From{Stateless: true}, l)
	place := e.o.Tools.Open(caller, tools.SessionOptions{Notify: func(n rpc.Notification) {
		l.notify(n)
	}})
	wanted.Subscriptions, wanted.TaskIDs = e.subscribe(place, wanted.Subscriptions), e.watchable(e.root, caller, wanted.TaskIDs)
	over := func() {
		e.hub.leave(caller.Workspace.ID, l)
		closeTools(place)
		e.live.Unlisten(caller.User.ID)
	}
	granted, _ := json.Marshal(map[string]any{"notifications": wanted}) // bools and strings always encode
	first := rpc.Notification{Method: "notifications/subscriptions/acknowledged", Params: l.tagged(granted)}.Encode()
	last, began, again := rpc.Result(l.id, l.tagged(e.listenResult())), c.Context().Time(), e.identification(c)
	c.Set(fiber.HeaderCacheControl, "no-cache, no-transform")
	c.Set(fiber.HeaderConnection, "close") // the connection carries nothing else once the stream has ended
	err := e.o.Streams.Open(c, stream.Standing, func(ctx context.Context, w *stream.Writer) {
		defer over()
		ctx, end := context.WithCancel(ctx)
		defer end()
		defer e.standing.add(&openStream{caller, end, func(now core.Caller) { e.hub.follow(now, place, l) }})()
		defer e.identifyAgain(ctx, again, end)()
		e.recheck(caller, began)
		if w.Event("message", first) != nil {
			return
		}
		changes := len(l.kinds) + len(wanted.Subscriptions)
		var watching sync.WaitGroup
		if len(wanted.TaskIDs) > 0 {
			watching.Go(func() { e.watchTasks(ctx, caller, wanted.TaskIDs, l, changes == 0) })
		}
		if changes+len(wanted.TaskIDs) > 0 {
			l.CopyTo(ctx, w)
		}
		end()
		watching.Wait()
		_ = w.Event("message", last) // fails if the client has disconnected
	})
	if err != nil {
		over()
		return e.denied(err).of(m.ID).send(c)
	}
	return nil
}

// kinds returns the lists whose changes are wanted. A change to the templates is announced as a change to the
// resources.
func (w *listenFilter) kinds() (kinds []core.Kind) {
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

// subscribe subscribes to resources and returns those for which it succeeded.
func (e *Endpoint) subscribe(place *tools.Session, uris []string) (granted []string) {
	ctx, cancel := context.WithTimeout(e.root, gateTimeout)
	defer cancel()
	for _, uri := range uris {
		if err := place.Subscribe(ctx, uri); err != nil {
			e.log.Debug("resource not subscribed", "error", err)
			continue
		}
		granted = append(granted, uri)
	}
	return granted
}

// notify forwards an app's notification to a client without a session: a resource update, or a list change that the
// client wants. The list change comes from an instance that serves such clients.
func (l *listener) notify(n rpc.Notification) {
	if n.Method == "notifications/resources/updated" {
		l.Push(rpc.Notification{Method: n.Method, Params: l.tagged(n.Params)}.Encode())
		return
	}
	for _, kind := range l.kinds {
		if n.Method == listChangedMethod(kind) {
			l.ListChanged(kind)
		}
	}
}

// ListChanged notifies the client that a list has changed, if the client wants that.
func (l *listener) ListChanged(kind core.Kind) {
	if slices.Contains(l.kinds, kind) {
		l.Push(rpc.Notification{Method: listChangedMethod(kind), Params: l.tagged(empty())}.Encode())
	}
}

// tagged adds the request's ID to the _meta of params.
func (l *listener) tagged(params json.RawMessage) json.RawMessage {
	params = orEmpty(params)
	meta := empty()
	if at, err := rawjson.Find(params, "_meta"); err == nil && !at.Empty() {
		meta = at.In(params)
	}
	tagged, err := rawjson.Set(meta, rawjson.Member{Name: mcp.MetaKeySubscriptionID, Value: l.id})
	if err != nil {
		return params
	}
	all, err := rawjson.Set(params, rawjson.Member{Name: "_meta", Value: tagged})
	if err != nil {
		return params
	}
	return all
}

// listenResult returns the final result of subscriptions/listen.
func (e *Endpoint) listenResult() json.RawMessage {
	result, _ := rawjson.Set(empty(), e.sign(nil, []rawjson.Member{{Name: "resultType", Value: json.RawMessage(`"complete"`)}})...) // this cannot fail, because the result is an object
	return result
}
