package apps

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/core/link"
)

// caller is one call in flight, as far as its app may ask about it.
type caller struct {
	ctx      context.Context // the call's own
	client   *Client         // nil when nobody can be asked
	asker    Asker
	deadline *time.Timer
	limit    time.Duration

	mu     sync.Mutex
	asking int // questions that the client has yet to answer
}

// can reports whether the client can be asked for what.
func (k *caller) can(what ability) bool {
	return k != nil && k.asker != nil && k.client != nil && k.client.can&what == what
}

// ask puts a question to the client. A person may take longer than an app may be silent.
func (k *caller) ask(ctx context.Context, q link.Question) (json.RawMessage, error) {
	k.pause(1)
	defer k.pause(-1)
	if h, ok := k.asker.(Hearer); ok && q.Notify != nil {
		return h.Hear(ctx, q.Method, q.Params, q.Notify)
	}
	return k.asker.Ask(ctx, q.Method, q.Params)
}

// pause stops the call's clock while questions are open.
func (k *caller) pause(more int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asking += more
	switch {
	case k.asking > 0:
		k.deadline.Stop()
	case k.ctx.Err() == nil: // an answer may come after the call ended
		k.deadline.Reset(k.limit)
	}
}

// alive tells of progress: the app is not silent.
func (k *caller) alive() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.asking == 0 {
		k.deadline.Reset(k.limit)
	}
}

// askedInCommon answers what the shared instance of an app asks. Before StatelessVersion an app
// cannot say for which call it asks, so a question reaches a client only when nobody else's call is
// in flight. That the app asks is remembered: from then on each session has an instance of its own.
func (a *app) askedInCommon(ctx context.Context, q link.Question) (json.RawMessage, error) {
	what := wanted(q.Method, q.Params)
	a.learn(func(t *traits) { t.asks |= what })
	switch len(q.Callers) {
	case 0:
		return nobody(q.Method, "no call is in flight that the question could be about")
	case 1:
		return a.answer(ctx, q, q.Callers[0].(*caller), "")
	}
	return nobody(q.Method, "several callers' calls are in flight and the question names none; ask again in the next call")
}

// answer puts a question to the caller's client. While the call runs its end takes the question back.
func (a *app) answer(ctx context.Context, q link.Question, k *caller, session string) (json.RawMessage, error) {
	what := wanted(q.Method, q.Params)
	if !k.can(what) {
		return nobody(q.Method, "the client of this call did not declare the capability")
	}
	if what == abilityURL {
		a.yard.errands.note(a.key, q.Params, k.client.session)
	}
	if session == "" || k.ctx.Err() == nil {
		limited, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(k.ctx, cancel)()
		ctx = limited
	}
	result, err := k.ask(ctx, q)
	if _, ok := errors.AsType[*link.RPCError](err); err == nil || ok {
		return result, err
	}
	a.log.Debug("A question of an app was not answered", "method", q.Method, "error", err)
	return nil, &link.RPCError{Code: internalError, Message: "the client did not answer"}
}

// internalError is JSON-RPC 2.0's, 5.1.
const internalError = -32603

// nobody refuses a question that no client can be asked. Having no roots is an answer.
func nobody(method, why string) (json.RawMessage, error) {
	if method == methodRoots {
		return json.RawMessage(`{"roots":[]}`), nil
	}
	return nil, &link.RPCError{Code: methodNotFound, Message: method + " cannot be answered: " + why}
}
