package link

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/ropewalk/ropewalk/core/link/remote"
	"github.com/ropewalk/ropewalk/core/rawjson"
	"github.com/ropewalk/ropewalk/core/rpc"
)

// dispatch handles a message from the app. It returns false for a message that the SDK must handle. It runs on
// the reader and never blocks. The spans of e point into a buffer that is reused, unless owned is set.
func (l *Link) dispatch(e *rpc.Envelope, owned bool) bool {
	switch {
	case e.IsResponse():
		return l.dispatchResponse(e, owned)
	case e.IsNotification():
		return l.dispatchNotification(e)
	}
	return l.dispatchRequest(e)
}

func (l *Link) dispatchResponse(e *rpc.Envelope, owned bool) bool {
	if e.IDKind != rpc.IDNumber || e.Number > l.nextID.Load() {
		l.dispatchUnmatched(e)
		return true
	}
	if e.Number <= rpc.LastSDKID {
		l.discovery.end()
		if e.Result != nil && !l.open.Load() { // the last response of the handshake wins
			l.handshake = bytes.Clone(e.Result)
		}
		return false
	}
	c := l.remove(e.Number)
	if c == nil {
		l.discarded.Add("a response to a cancelled call")
		return true
	}
	if e.Error != nil {
		c.finish(nil, rpcError(e.Error))
		return true
	}
	result := e.Result
	if !owned {
		result = bytes.Clone(result)
	}
	c.finish(result, nil)
	return true
}

// dispatchUnmatched handles a response whose id matches no request. A common mistake is to send the id of a pending
// request as a string instead of a number. That request then fails immediately. Any other response may have been meant
// for a pending request. If a request then ends without a response, its error mentions the response.
func (l *Link) dispatchUnmatched(e *rpc.Envelope) {
	what, failure := "a response with the id null", ""
	switch e.IDKind {
	case rpc.IDText:
		what = fmt.Sprintf("a response with the id %.100q", e.Text)
		number, err := strconv.ParseInt(e.Text, 10, 64)
		if err != nil {
			break
		}
		err = fmt.Errorf("%w: its id is the string %q, but the request's id is the number %d", ErrMalformed, e.Text, number)
		if c := l.remove(number); c != nil {
			c.finish(nil, err)
			return
		}
		if number <= rpc.LastSDKID && !l.open.Load() {
			l.drop(err)
			return
		}
	case rpc.IDNumber:
		what = fmt.Sprintf("a response with the id %d", e.Number)
	case rpc.IDNull, rpc.IDAbsent:
		var failed struct{ Message string }
		if json.Unmarshal(e.Error, &failed) == nil && failed.Message != "" {
			failure = fmt.Sprintf(" and the error %.200q", failed.Message) // may concern another user's request
		}
	}
	l.mu.Lock()
	for _, c := range l.calls {
		c.missed(what)
	}
	l.mu.Unlock()
	if whole := what + failure + ", which matches no request"; l.discarded.Add(whole) && l.o.Report != nil {
		l.o.Report("the app sent " + whole)
	}
}

func rpcError(raw []byte) error {
	e := &rpc.Error{}
	if err := json.Unmarshal(raw, e); err != nil {
		return fmt.Errorf("%w: its error object cannot be read: %w", ErrMalformed, err)
	}
	switch e.Code { // codes of errors that the transport substituted for a response
	case remote.CodeTooLarge:
		return fmt.Errorf("%w%s", ErrTooLarge, strings.TrimPrefix(e.Message, ErrTooLarge.Error()))
	case remote.CodeMalformed:
		return ErrMalformed
	}
	return e
}

func (l *Link) dispatchNotification(e *rpc.Envelope) bool {
	switch e.Method {
	case "notifications/progress":
		l.dispatchProgress(e.Params)
	case "notifications/tools/list_changed":
		l.listChanges.add("tools")
	case "notifications/prompts/list_changed":
		l.listChanges.add("prompts")
	case "notifications/resources/list_changed":
		l.listChanges.add("resources")
	case "notifications/subscriptions/acknowledged":
		l.acknowledged()
		l.report(e, nil)
	case "notifications/cancelled":
		return l.cancelAppRequest(e.Params)
	case "notifications/message":
		if c := l.onlyCall(); c != nil && !c.silent {
			l.queueNotification(c, rpc.Notification{Method: e.Method, Params: bytes.Clone(e.Params)})
			return true
		}
		l.report(e, l.callers())
	default:
		l.report(e, nil)
	}
	return true
}

// onlyCall returns the only pending call that has a caller, regardless of the server's own calls. If no call has a
// caller, it returns the server's only call. It returns nil if there are several.
func (l *Link) onlyCall() *call {
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

// dispatchProgress finds the call by the link's token and restores the caller's token.
func (l *Link) dispatchProgress(params []byte) {
	id, at, ok := rpc.ProgressToken(params)
	var c *call
	if ok {
		l.mu.Lock()
		c = l.calls[id]
		l.mu.Unlock()
	}
	switch {
	case c == nil || c.token == nil:
		l.discarded.Add("progress for a call that has ended or has no progress token")
	case !c.silent:
		l.queueNotification(c, rpc.Notification{Method: "notifications/progress", Params: rawjson.Replace(params, at, c.token)})
	}
}

func (l *Link) queueNotification(c *call, n rpc.Notification) {
	if c.queue(n) {
		l.discarded.Add("notifications for a caller that was too slow")
	}
}

// report passes OnNotification a notification that does not belong to a call, or belongs to one of several callers.
func (l *Link) report(e *rpc.Envelope, callers []Caller) {
	if l.o.OnNotification == nil {
		return
	}
	defer func() {
		if r := recover(); r != nil {
			l.log.Error("a notification handler panicked", "method", e.Method, "panic", r)
		}
	}()
	l.o.OnNotification(rpc.Notification{Method: e.Method, Params: bytes.Clone(e.Params)}, callers)
}

// listChanges turns list_changed notifications into calls to Options.OnListChanged. A kind that is added several times
// before its call begins is reported only once.
type listChanges struct {
	mu    sync.Mutex
	kinds []string
	wake  chan struct{} // capacity 1
	group sync.WaitGroup
}

func (c *listChanges) add(kind string) {
	c.mu.Lock()
	if !slices.Contains(c.kinds, kind) {
		c.kinds = append(c.kinds, kind)
	}
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *listChanges) drain() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	kinds := c.kinds
	c.kinds = nil
	return kinds
}

// start reports changes until the link is closed.
func (c *listChanges) start(l *Link) {
	c.group.Go(func() {
		for {
			select {
			case <-l.done:
				return
			case <-c.wake:
			}
			for _, kind := range c.drain() {
				c.report(l, kind)
			}
		}
	})
}

func (c *listChanges) report(l *Link, kind string) {
	defer func() {
		if r := recover(); r != nil {
			l.log.Error("the handler for a list change panicked", "kind", kind, "panic", r)
		}
	}()
	l.o.OnListChanged(kind)
}
