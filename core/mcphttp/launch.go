package mcphttp

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"

	"github.com/ropewalk/ropewalk/core/tools"
)

// task is a call that has begun as far as that goes without waiting for anybody.
type task struct {
	quick  bool         // the rest waits for nobody but the flight
	flight tools.Flight // the call, on its way to its app; nil when it is not
	rest   func() (result [][]byte, err error)
}

// launch begins a call. What has to wait for no app, or for its answer alone, is then waited for by the
// goroutine that serves the request: handing a call over to another one and back costs more than most
// of what is done for it.
func (e *Endpoint) launch(ctx context.Context, k *call) (t task) {
	defer e.caught(k, func(err error) { t = done(nil, err) })
	switch k.method {
	case "tools/list":
		if list, whole := e.wholeList(k); whole {
			return done([][]byte{[]byte(listOpen), list, {'}'}}, nil)
		}
		return done(inOnePart(e.listTools(ctx, k)))
	case "tools/call":
		if k.fields["inputResponses"] != nil || k.fields["requestState"] != nil {
			break // goes on with an earlier call, which may still be waiting
		}
		call, err := e.toolCall(k)
		if err != nil {
			return done(nil, err)
		}
		flight, err := e.o.Tools.Send(ctx, k.caller, call, k.out.wake)
		if err != nil {
			return done(inOnePart(e.toolResult(ctx, k, nil, err)))
		}
		if flight != nil {
			return task{quick: true, flight: flight, rest: func() ([][]byte, error) {
				result, err := flight.Wait(ctx)
				return inOnePart(e.toolResult(ctx, k, result, err))
			}}
		}
	}
	return task{rest: func() ([][]byte, error) { return inOnePart(e.methodOf(k)(ctx, k)) }}
}

// done is a task of which nothing is left.
func done(result [][]byte, err error) task {
	return task{quick: true, rest: func() ([][]byte, error) { return result, err }}
}

// inOnePart is a result as task wants it: in parts, so that what the namespace keeps marshalled is
// copied once only.
func inOnePart(result json.RawMessage, err error) ([][]byte, error) { return [][]byte{result}, err }

// land ends a call.
func (e *Endpoint) land(k *call, t task) (result [][]byte, err error) {
	defer e.caught(k, func(internal error) { result, err = nil, internal })
	return t.rest()
}

// caught is deferred: a panic fails the call alone (hardening row 4).
func (e *Endpoint) caught(k *call, fail func(error)) {
	if p := recover(); p != nil {
		e.log.Error("A call panicked", "method", k.method, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		fail(internal())
	}
}

// lands waits for the flight, and reports whether the rest of the task waits for nobody. It is false
// when the answer may have to begin before that: as a stream, because the call was ended, or because
// somebody else has woken the exchange.
func (x *exchange) lands(t task) bool {
	if t.flight == nil {
		return t.quick
	}
	<-x.wake
	return t.flight.Answered()
}
