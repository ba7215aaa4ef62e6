package link

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/ropewalk/ropewalk/core/rawjson"
	"github.com/ropewalk/ropewalk/core/rpc"
)

// route takes what the link handles itself and reports whether it did; the SDK gets the rest. It
// runs on the reader and never waits. The spans of e belong to a buffer that is reused, unless
// owned is set.
func (l *Link) route(e *envelope, owned bool) bool {
	switch {
	case e.response():
		return l.routeResponse(e, owned)
	case e.notification():
		return l.routeNotification(e)
	}
	return l.routeRequest(e)
}

func (l *Link) routeResponse(e *envelope, owned bool) bool {
	if e.kind != idNumber || e.number <= firstID {
		if e.result != nil && !l.open.Load() { // the SDK's last call of the handshake is the one that counts
			l.greeted = bytes.Clone(e.result)
		}
		return e.kind == idNull // an answer to nobody
	}
	c := l.take(e.number)
	if c == nil {
		l.strays.add("an answer to a call that was given up")
		return true
	}
	if e.failure != nil {
		c.finish(answer{err: rpcError(e.failure)})
		return true
	}
	result := e.result
	if !owned {
		result = bytes.Clone(result)
	}
	c.finish(answer{result: result})
	return true
}

// take removes the call from those in flight, so that a second answer finds nobody.
func (l *Link) take(id int64) *call {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.calls[id]
	delete(l.calls, id)
	return c
}

func rpcError(raw []byte) error {
	e := &rpc.Error{}
	if err := json.Unmarshal(raw, e); err != nil {
		return fmt.Errorf("%w: its error object cannot be read: %w", ErrMalformed, err)
	}
	switch e.Code { // the transport's own word about an answer it could not let through
	case codeTooLarge:
		return fmt.Errorf("%w%s", ErrTooLarge, strings.TrimPrefix(e.Message, ErrTooLarge.Error()))
	case codeMalformed:
		return ErrMalformed
	}
	return e
}

func (l *Link) routeNotification(e *envelope) bool {
	switch e.method {
	case "notifications/progress":
		l.routeProgress(e.params)
	case "notifications/tools/list_changed":
		l.changes.mark("tools")
	case "notifications/prompts/list_changed":
		l.changes.mark("prompts")
	case "notifications/resources/list_changed":
		l.changes.mark("resources")
	case "notifications/cancelled":
		return l.cancelAsked(e.params)
	case "notifications/message":
		if c := l.only(); c != nil && !c.deaf {
			l.note(c, rpc.Notification{Method: e.method, Params: bytes.Clone(e.params)})
			return true
		}
		l.observe(e, l.callers())
	default:
		l.observe(e, nil)
	}
	return true
}

// only is the one caller's call in flight, whatever the server itself asks meanwhile; without any,
// the server's only own one. It is nil when there are several.
func (l *Link) only() *call {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found *call
	alone := false
	for _, c := range l.calls {
		switch {
		case found == nil || found.caller == nil && c.caller != nil:
			found, alone = c, true
		case (found.caller == nil) == (c.caller == nil):
			alone = false
		}
	}
	if !alone {
		return nil
	}
	return found
}

// routeProgress finds the call by our own token and puts the caller's back.
func (l *Link) routeProgress(params []byte) {
	id, at, ok := progressOf(params)
	var c *call
	if ok {
		l.mu.Lock()
		c = l.calls[id]
		l.mu.Unlock()
	}
	switch {
	case c == nil || c.token == nil:
		l.strays.add("progress of a call that is over or never asked for it")
	case !c.deaf:
		l.note(c, rpc.Notification{Method: "notifications/progress", Params: rawjson.Replace(params, at, c.token)})
	}
}

func (l *Link) note(c *call, n rpc.Notification) {
	if c.note(n) {
		l.strays.add("notifications faster than their caller takes them")
	}
}

// observe passes on a notification that belongs to no call, or to one of several callers.
func (l *Link) observe(e *envelope, callers []any) {
	if l.o.OnNotification == nil {
		return
	}
	defer func() {
		if r := recover(); r != nil {
			l.log.Error("the receiver of a notification panicked", "app", l.o.Name, "method", e.method, "panic", r)
		}
	}()
	l.o.OnNotification(rpc.Notification{Method: e.method, Params: bytes.Clone(e.params), Callers: callers})
}
