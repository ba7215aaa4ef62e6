package link

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/ropewalk/ropewalk/core/link/remote"
	"github.com/ropewalk/ropewalk/core/rpc"
)

// dispatchRequest starts the handler for a request from the app. It returns false if there is no handler, in which
// case the SDK answers.
func (l *Link) dispatchRequest(e *rpc.Envelope) bool {
	handler := l.o.Requests[e.Method]
	if handler == nil {
		return false
	}
	id, size := sdkID(e), len(e.Params)+len(e.Text)
	ctx, cancel := context.WithCancel(l.life)
	if !l.beginAppRequest(id.Raw(), size, cancel) {
		cancel()
		l.discarded.Add("a request beyond the limit, or with an id that is already in use")
		return true
	}
	unanswered, answered := context.WithCancel(ctx) // cancelled before the response is sent
	q := rpc.Question{
		Method: e.Method, Params: bytes.Clone(e.Params),
		Notify: func(n rpc.Notification) { l.notifyDuringRequest(unanswered, n) },
	}
	callers := l.callers()
	earlier := l.earlierNotifications()
	go func() {
		defer cancel()
		defer l.releaseAppRequest(size)
		for _, delivered := range earlier {
			select {
			case <-delivered:
			case <-ctx.Done():
			}
		}
		l.answerAppRequest(ctx, id, q.Method, func() (json.RawMessage, error) {
			defer answered()
			return handler(ctx, q, callers)
		})
	}()
	return true
}

// notifyDuringRequest forwards a client's notification about the app's request to the app, until the request is
// answered.
func (l *Link) notifyDuringRequest(ctx context.Context, n rpc.Notification) {
	if ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, notifyTimeout) // the caller waits for this
	defer cancel()
	if err := l.Notify(ctx, n.Method, n.Params); err != nil {
		l.log.Debug("could not send a notification about the app's request", "method", n.Method, "error", remote.SafeError(err))
	}
}

// earlierNotifications returns one channel per pending call. Each channel is closed once the call's caller has taken
// every notification received so far. Waiting for these channels keeps a question from overtaking progress
// notifications that the app sent earlier.
func (l *Link) earlierNotifications() (marks []<-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.calls {
		if c.caller != nil {
			marks = append(marks, c.mark())
		}
	}
	return marks
}

// callers returns the callers of the pending requests, in the order of the requests.
func (l *Link) callers() []Caller {
	l.mu.Lock()
	defer l.mu.Unlock()
	ids := make([]int64, 0, len(l.calls))
	for id, c := range l.calls {
		if c.caller != nil {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	found := make([]Caller, len(ids))
	for i, id := range ids {
		found[i] = l.calls[id].caller
	}
	return found
}

// beginAppRequest records that a request of size bytes is being answered. It returns false if the link is closing, if
// the id is in use, or if the open requests are too many or too large in total. Requests whose responses are still
// being sent are included, because the app may be slow to read them.
func (l *Link) beginAppRequest(id any, size int, cancel context.CancelFunc) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, taken := l.appRequests[id]; taken || l.closing || len(l.appRequests) >= maxRequests || l.unsent >= 2*maxRequests || l.asked > 0 && l.asked+size > maxRequestBytes {
		return false
	}
	l.appRequests[id] = cancel
	l.asked += size
	l.unsent++
	return true
}

// releaseAppRequest stops counting a request that is no longer in memory.
func (l *Link) releaseAppRequest(size int) {
	l.mu.Lock()
	l.asked -= size
	l.unsent--
	l.mu.Unlock()
}

// endAppRequest releases an id, so that the app can use it again.
func (l *Link) endAppRequest(id any) {
	l.mu.Lock()
	delete(l.appRequests, id)
	l.mu.Unlock()
}

// answerAppRequest runs the handler and sends its result, unless the app cancelled the request. The id is released
// first, because the app may reuse it as soon as it has the response.
func (l *Link) answerAppRequest(ctx context.Context, id jsonrpc.ID, method string, handler func() (json.RawMessage, error)) {
	response := &jsonrpc.Response{ID: id}
	var err error
	if response.Result, err = l.handle(method, handler); err != nil {
		response = &jsonrpc.Response{ID: id, Error: wireError(err)}
	}
	l.endAppRequest(id.Raw())
	if ctx.Err() != nil {
		return
	}
	if err := l.conn.Write(ctx, response); err != nil {
		l.log.Debug("could not send the response to the app's request", "method", method, "error", remote.SafeError(err))
	}
}

func (l *Link) handle(method string, handler func() (json.RawMessage, error)) (result json.RawMessage, err error) {
	defer func() {
		if p := recover(); p != nil {
			l.log.Error("the handler for an app's request panicked", "method", method, "panic", p)
			result, err = nil, errors.New("internal error")
		}
	}()
	result, err = handler()
	if err == nil && len(result) == 0 {
		err = fmt.Errorf("no response to %s", method)
	}
	return result, err
}

func wireError(err error) error {
	if failure, ok := errors.AsType[*rpc.Error](err); ok {
		return &jsonrpc.Error{Code: int64(failure.Code), Message: failure.Message, Data: failure.Data}
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
}

// cancelAppRequest cancels the handler of a request that the app cancelled. It returns false for a request that
// the SDK answers.
func (l *Link) cancelAppRequest(params []byte) bool {
	at, err := findIn(params, "requestId")
	if err != nil || at.Empty() {
		return true
	}
	var e rpc.Envelope
	if e.SetID(at.In(params)) != nil {
		return true
	}
	id := sdkID(&e)
	l.mu.Lock()
	cancel := l.appRequests[id.Raw()]
	l.mu.Unlock()
	if cancel != nil {
		cancel()
	}
	return cancel != nil
}
