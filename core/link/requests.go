package link

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/ropewalk/ropewalk/core/rpc"
)

// routeRequest gives a request of the bundle to its handler. Without one it is the SDK's.
func (l *Link) routeRequest(e *envelope) bool {
	handler := l.o.Requests[e.method]
	if handler == nil {
		return false
	}
	id := e.id()
	ctx, cancel := context.WithCancel(l.life)
	if !l.admit(id.Raw(), cancel) {
		cancel()
		l.strays.add("more requests at once than are answered")
		return true
	}
	open, answered := context.WithCancel(ctx) // ends before the answer leaves
	q := Question{Method: e.method, Params: bytes.Clone(e.params), Callers: l.callers(), Notify: func(n rpc.Notification) { l.tellOfQuestion(open, n) }}
	said := l.saidBefore()
	go func() {
		defer cancel()
		for _, told := range said {
			select {
			case <-told:
			case <-ctx.Done():
			}
		}
		l.answer(ctx, func(ctx context.Context, q Question) (json.RawMessage, error) {
			defer answered()
			return handler(ctx, q)
		}, id, q)
	}()
	return true
}

// tellOfQuestion passes on what a client says about a question, until that is answered.
func (l *Link) tellOfQuestion(ctx context.Context, n rpc.Notification) {
	if ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, cancelTimeout) // the notifier waits meanwhile
	defer cancel()
	if err := l.Notify(ctx, n.Method, n.Params); err != nil {
		l.log.Debug("what the client said about a question did not reach the app", "app", l.o.Name, "method", n.Method, "error", scrub(err))
	}
}

// saidBefore is closed, all of it, when the callers of the calls in flight have been handed what came for
// them so far: a question must not overtake the progress that the bundle sent before it.
func (l *Link) saidBefore() (marks []<-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.calls {
		if c.caller != nil {
			marks = append(marks, c.mark())
		}
	}
	return marks
}

// callers are those for whom calls are in flight, in the order of the calls.
func (l *Link) callers() []any {
	l.mu.Lock()
	defer l.mu.Unlock()
	ids := make([]int64, 0, len(l.calls))
	for id, c := range l.calls {
		if c.caller != nil {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	found := make([]any, len(ids))
	for i, id := range ids {
		found[i] = l.calls[id].caller
	}
	return found
}

// admit notes the request as being answered, unless there are too many or its id is taken.
func (l *Link) admit(id any, cancel context.CancelFunc) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, taken := l.asked[id]; taken || l.closing || len(l.asked) >= maxRequests {
		return false
	}
	l.asked[id] = cancel
	return true
}

// forget lets the bundle use an id again.
func (l *Link) forget(id any) {
	l.mu.Lock()
	delete(l.asked, id)
	l.mu.Unlock()
}

// answer runs the handler and sends what it says, unless the bundle took its question back. The id
// is forgotten first: with the answer in its hands, the bundle may use it again.
func (l *Link) answer(ctx context.Context, handler RequestHandler, id jsonrpc.ID, q Question) {
	response := &jsonrpc.Response{ID: id}
	var err error
	if response.Result, err = l.ask(ctx, handler, q); err != nil {
		response = &jsonrpc.Response{ID: id, Error: wireError(err)}
	}
	l.forget(id.Raw())
	if ctx.Err() != nil {
		return
	}
	if err := l.conn.Write(ctx, response); err != nil {
		l.log.Debug("an answer did not reach the app", "app", l.o.Name, "method", q.Method, "error", scrub(err))
	}
}

func (l *Link) ask(ctx context.Context, handler RequestHandler, q Question) (result json.RawMessage, err error) {
	defer func() {
		if p := recover(); p != nil {
			l.log.Error("the handler of an app's request panicked", "app", l.o.Name, "method", q.Method, "panic", p)
			result, err = nil, errors.New("internal error")
		}
	}()
	result, err = handler(ctx, q)
	if err == nil && len(result) == 0 {
		err = fmt.Errorf("no answer to %s", q.Method)
	}
	return result, err
}

func wireError(err error) error {
	if failure, ok := errors.AsType[*rpc.Error](err); ok {
		return &jsonrpc.Error{Code: int64(failure.Code), Message: failure.Message, Data: failure.Data}
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
}

// cancelAsked ends the handler of a request that the bundle cancelled; the SDK's requests are the
// SDK's to cancel.
func (l *Link) cancelAsked(params []byte) bool {
	at, err := findIn(params, "requestId")
	if err != nil || at.Empty() {
		return true
	}
	var e envelope
	if e.setID(at.In(params)) != nil {
		return true
	}
	id := e.id()
	l.mu.Lock()
	cancel := l.asked[id.Raw()]
	l.mu.Unlock()
	if cancel != nil {
		cancel()
	}
	return cancel != nil
}
