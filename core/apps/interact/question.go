package interact

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/ropewalk/ropewalk/core/apps/instance"
	"github.com/ropewalk/ropewalk/core/link"
	"github.com/ropewalk/ropewalk/core/rpc"
)

// AnswerShared answers a question from the app's shared instance. Before link.StatelessVersion, an app cannot say which
// call its question belongs to, so the question reaches a client only if exactly one call is in flight. The server
// remembers that the app asks: from then on, each session gets its own instance.
func (d *Dialog) AnswerShared(ctx context.Context, q rpc.Question, callers []link.Caller) (json.RawMessage, error) {
	needed := neededAbilities(q.Method, q.Params)
	d.learn(func(c *bundleCapabilities) { c.asks |= needed })
	switch len(callers) {
	case 0:
		return d.refuse(q.Method, "there is no call in flight that the request could belong to")
	case 1:
		return callers[0].Answer(ctx, q, callers)
	}
	return d.refuse(q.Method, "calls from several clients are in flight and the request does not name one; ask again in the next call")
}

// Answer implements link.Caller: it puts a question to the client. The question may belong to any of the callers, which
// all have the same client. It is cancelled when the last of them ends, and it stops the clocks of all of them.
func (c *Call) Answer(ctx context.Context, q rpc.Question, callers []link.Caller) (json.RawMessage, error) {
	needed := neededAbilities(q.Method, q.Params)
	if !c.canAsk(needed) {
		return c.dialog.refuse(q.Method, "the client of this call did not declare the capability")
	}
	if q.Method == instance.MethodRoots && len(q.Params) == 0 {
		q.Params = json.RawMessage(`{}`) // some clients reject a request without params
	}
	d := c.dialog
	if needed == abilityURL {
		d.broker.elicitations.record(d, q.Params, c.Client.session)
	}
	ctx, cancel := untilAllEnd(ctx, callers)
	defer cancel()
	for _, caller := range callers {
		defer caller.Hold()()
	}
	result, err := c.Asker.Ask(ctx, q)
	if _, ok := errors.AsType[*rpc.Error](err); err == nil || ok {
		return result, err
	}
	d.log.Debug("an app's request to its client was not answered", "method", q.Method, "error", err)
	return nil, &rpc.Error{Code: rpc.CodeInternalError, Message: "the client did not answer"}
}

// canAsk reports whether the client can answer requests that need the given abilities.
func (c *Call) canAsk(needed ability) bool {
	return c.Asker != nil && c.Client != nil && c.Client.abilities&needed == needed
}

// untilAllEnd returns a context that is cancelled when ctx is, or when all callers have ended. If there are none,
// only ctx cancels it.
func untilAllEnd(ctx context.Context, callers []link.Caller) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	running := new(atomic.Int64)
	running.Store(int64(len(callers)))
	for _, c := range callers {
		stop := context.AfterFunc(c.Context(), func() {
			if running.Add(-1) == 0 {
				cancel()
			}
		})
		context.AfterFunc(ctx, func() { stop() })
	}
	return ctx, cancel
}

// refuse answers a request that cannot be put to any client. A request for roots gets the directories that the app was
// granted; everything else gets an error.
func (d *Dialog) refuse(method, reason string) (json.RawMessage, error) {
	if method == instance.MethodRoots {
		type root struct {
			URI  string `json:"uri"`
			Name string `json:"name"`
		}
		roots := []root{}
		for _, dir := range d.app.Roots() {
			roots = append(roots, root{(&url.URL{Scheme: "file", Path: dir}).String(), filepath.Base(dir)})
		}
		return json.Marshal(map[string]any{"roots": roots})
	}
	return nil, &rpc.Error{Code: rpc.CodeMethodNotFound, Message: method + " cannot be answered: " + reason}
}

// SessionOf returns the session that all callers share, or "" if they do not share one.
func SessionOf(callers []link.Caller) (session string) {
	for i, c := range callers {
		if i > 0 && c.Session() != session {
			return ""
		}
		session = c.Session()
	}
	return session
}

// These limit how many URL elicitations are remembered, and how long their IDs may be. The oldest are dropped first.
const (
	maxElicitations  = 1000
	maxElicitationID = 1024 // bytes
)

// elicitations remembers which session was sent to which URL, so that the completion notification
// (notifications/elicitation/complete) reaches only that session.
type elicitations struct {
	mu       sync.Mutex
	sessions map[elicitation]string
	order    []elicitation
}

type elicitation struct {
	app AppRef
	id  string
}

func elicitationID(params json.RawMessage) string {
	var elicit struct {
		ID string `json:"elicitationId"`
	}
	_ = json.Unmarshal(params, &elicit) // without an ID there is nothing to remember
	return elicit.ID
}

func (e *elicitations) record(d *Dialog, params json.RawMessage, session string) {
	id := elicitationID(params)
	if id == "" || len(id) > maxElicitationID || session == "" {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	one := elicitation{d.key, id}
	if _, known := e.sessions[one]; !known {
		e.order = append(e.order, one)
	}
	e.sessions[one] = session
	if len(e.order) > maxElicitations {
		delete(e.sessions, e.order[0])
		e.order = e.order[1:]
	}
}

// ElicitationSession returns the session that an elicitation's completion notification is for, or "" if it is
// unknown.
func (d *Dialog) ElicitationSession(n rpc.Notification) string {
	e := d.broker.elicitations
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.sessions[elicitation{d.key, elicitationID(n.Params)}]
}

// With these error codes, an app indicates what the user or the client must do first.
const (
	codeURLElicitationRequired = -32042 // 2025-11-25: the user must visit the URLs in the data before the call is repeated
	codeMissingCapability      = -32021 // link.StatelessVersion: the client did not declare a required capability
)

// urlElicitationResult converts the error with which an app sends the user to URLs into the equivalent result of
// link.StatelessVersion, which has no such error. Other errors are returned unchanged.
func (c *Call) urlElicitationResult(err error) (json.RawMessage, error) {
	rpcErr, ok := errors.AsType[*rpc.Error](err)
	if !ok || rpcErr.Code != codeURLElicitationRequired {
		return nil, err
	}
	var data struct {
		Elicitations []json.RawMessage `json:"elicitations"`
	}
	if json.Unmarshal(rpcErr.Data, &data) != nil || len(data.Elicitations) == 0 || len(data.Elicitations) > maxRequests {
		return nil, err
	}
	if !c.canAsk(abilityURL) {
		return nil, &rpc.Error{Code: codeMissingCapability, Message: rpcErr.Message, Data: json.RawMessage(`{"requiredCapabilities":{"elicitation":{"url":{}}}}`)}
	}
	requests := make(map[string]inputRequest, len(data.Elicitations))
	for i, params := range data.Elicitations {
		requests[fmt.Sprintf("page%d", i+1)] = inputRequest{instance.MethodElicit, params}
	}
	return json.Marshal(map[string]any{"resultType": "input_required", "inputRequests": requests})
}
