package interact

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"

	"github.com/ropewalk/ropewalk/core/apps/instance"
	"github.com/ropewalk/ropewalk/core/link"
	"github.com/ropewalk/ropewalk/core/rpc"
)

// The error codes of JSON-RPC 2.0, 5.1.
const (
	methodNotFound = -32601
	invalidParams  = -32602
	internalError  = -32603
)

// AnswerShared answers a request of the app's shared instance. Before link.StatelessVersion an app
// cannot say which call its request belongs to, so it reaches a client only when a single call
// runs. That the app asks is remembered: from then on each session gets an instance of its own.
func (d *Dialog) AnswerShared(ctx context.Context, q link.Question) (json.RawMessage, error) {
	needed := neededAbilities(q.Method, q.Params)
	d.learn(func(c *bundleCapabilities) { c.asks |= needed })
	switch len(q.Callers) {
	case 0:
		return refuse(q.Method, "no call is in flight that the request could belong to")
	case 1:
		return d.answer(ctx, q, q.Callers[0].(*InFlight), inFlightOf(q))
	}
	return refuse(q.Method, "calls of several clients are in flight and the request names none; ask again in the next call")
}

// inFlightOf returns the calls that a request may belong to.
func inFlightOf(q link.Question) []*InFlight {
	calls := make([]*InFlight, len(q.Callers))
	for i, c := range q.Callers {
		calls[i] = c.(*InFlight)
	}
	return calls
}

// answer forwards a request to the client of f. It may belong to any of calls, which are all of that
// client: it is cancelled when the last of them ends, and stops the clocks of all of them.
func (d *Dialog) answer(ctx context.Context, q link.Question, f *InFlight, calls []*InFlight) (json.RawMessage, error) {
	needed := neededAbilities(q.Method, q.Params)
	if !f.canAsk(needed) {
		return refuse(q.Method, "the client of this call did not declare the capability")
	}
	if q.Method == instance.MethodRoots && len(q.Params) == 0 {
		q.Params = json.RawMessage(`{}`) // some clients refuse a request without params
	}
	if needed == abilityURL {
		d.broker.elicitations.record(d, q.Params, f.client.session)
	}
	ctx, cancel := untilAllEnd(ctx, calls)
	defer cancel()
	for _, call := range calls {
		call.pauseClock(1)
		defer call.pauseClock(-1)
	}
	result, err := f.ask(ctx, q)
	if _, ok := errors.AsType[*rpc.Error](err); err == nil || ok {
		return result, err
	}
	d.log.Debug("request of an app to its client was not answered", "method", q.Method, "error", err)
	return nil, &rpc.Error{Code: internalError, Message: "the client did not answer"}
}

// untilAllEnd returns a context that ends with ctx, and when all of calls have ended; without calls it
// ends with ctx alone.
func untilAllEnd(ctx context.Context, calls []*InFlight) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	running := new(atomic.Int64)
	running.Store(int64(len(calls)))
	for _, call := range calls {
		stop := context.AfterFunc(call.life(), func() {
			if running.Add(-1) == 0 {
				cancel()
			}
		})
		context.AfterFunc(ctx, func() { stop() })
	}
	return ctx, cancel
}

// refuse answers a request that no client can be asked. For roots/list an empty list is an answer.
func refuse(method, reason string) (json.RawMessage, error) {
	if method == instance.MethodRoots {
		return json.RawMessage(`{"roots":[]}`), nil
	}
	return nil, &rpc.Error{Code: methodNotFound, Message: method + " cannot be answered: " + reason}
}
