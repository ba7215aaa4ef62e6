package apps

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ropewalk/ropewalk/core/link"
	"github.com/ropewalk/ropewalk/core/rpc"
)

// caller is one call in flight, as far as its app may ask about it.
type caller struct {
	parent context.Context // the call's own
	client *Client         // nil when nobody can be asked
	asker  Asker
	limit  time.Duration // how long the app may be silent

	mu       sync.Mutex
	deadline *time.Timer     // nil until the call is on its way
	asking   int             // questions that the client has yet to answer
	life     context.Context // ends with the call; made when first needed
	cancel   context.CancelFunc
	over     bool
}

// start starts the clock: late is called when the app has been silent for too long.
func (k *caller) start(late func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.deadline = time.AfterFunc(k.limit, late)
	if k.asking > 0 {
		k.deadline.Stop()
	}
}

// end tells that the call is over.
func (k *caller) end() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.over = true
	if k.cancel != nil {
		k.cancel()
	}
	if k.deadline != nil {
		k.deadline.Stop()
	}
}

// lifetime is a context that ends with the call.
func (k *caller) lifetime() context.Context {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.life == nil {
		k.life, k.cancel = context.WithCancel(k.parent)
		if k.over {
			k.cancel()
		}
	}
	return k.life
}

// can reports whether the client can be asked for what.
func (k *caller) can(what ability) bool {
	return k != nil && k.asker != nil && k.client != nil && k.client.can&what == what
}

// ask puts a question to the client.
func (k *caller) ask(ctx context.Context, q link.Question) (json.RawMessage, error) {
	if h, ok := k.asker.(ProgressAsker); ok && q.Notify != nil {
		return h.AskWithProgress(ctx, q.Method, q.Params, q.Notify)
	}
	return k.asker.Ask(ctx, q.Method, q.Params)
}

// pause stops the call's clock while questions are open. An answer may come after the call ended.
func (k *caller) pause(more int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asking += more
	switch {
	case k.deadline == nil || k.over || k.parent.Err() != nil:
	case k.asking > 0:
		k.deadline.Stop()
	default:
		k.deadline.Reset(k.limit)
	}
}

// alive tells of progress: the app is not silent.
func (k *caller) alive() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.asking == 0 && k.deadline != nil && !k.over {
		k.deadline.Reset(k.limit)
	}
}

// hearing is told, and a sign of life each time.
func (k *caller) hearing(told func(rpc.Notification)) func(rpc.Notification) {
	if told == nil {
		return nil
	}
	return func(n rpc.Notification) {
		k.alive()
		told(n)
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
		return a.answer(ctx, q, q.Callers[0].(*caller), callersOf(q))
	}
	return nobody(q.Method, "several callers' calls are in flight and the question names none; ask again in the next call")
}

// callersOf are the calls that a question may be about.
func callersOf(q link.Question) []*caller {
	calls := make([]*caller, len(q.Callers))
	for i, k := range q.Callers {
		calls[i] = k.(*caller)
	}
	return calls
}

// answer puts a question to the client of k. It may be about any of some calls, all of that client: the
// end of the last one takes it back, and until it is answered the clocks of all stand still, for a
// person may take longer than an app may be silent.
func (a *app) answer(ctx context.Context, q link.Question, k *caller, about []*caller) (json.RawMessage, error) {
	what := wanted(q.Method, q.Params)
	if !k.can(what) {
		return nobody(q.Method, "the client of this call did not declare the capability")
	}
	if what == abilityURL {
		a.manager.errands.note(a.key, q.Params, k.client.session)
	}
	ctx, cancel := whileAny(ctx, about)
	defer cancel()
	for _, call := range about {
		call.pause(1)
		defer call.pause(-1)
	}
	result, err := k.ask(ctx, q)
	if _, ok := errors.AsType[*rpc.Error](err); err == nil || ok {
		return result, err
	}
	a.log.Debug("A question of an app was not answered", "method", q.Method, "error", err)
	return nil, &rpc.Error{Code: internalError, Message: "the client did not answer"}
}

// whileAny is a context that also ends with the last of some calls; of none it only ends with ctx.
func whileAny(ctx context.Context, calls []*caller) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	running := new(atomic.Int64)
	running.Store(int64(len(calls)))
	for _, k := range calls {
		stop := context.AfterFunc(k.lifetime(), func() {
			if running.Add(-1) == 0 {
				cancel()
			}
		})
		context.AfterFunc(ctx, func() { stop() })
	}
	return ctx, cancel
}

// internalError is JSON-RPC 2.0's, 5.1.
const internalError = -32603

// nobody refuses a question that no client can be asked. Having no roots is an answer.
func nobody(method, why string) (json.RawMessage, error) {
	if method == methodRoots {
		return json.RawMessage(`{"roots":[]}`), nil
	}
	return nil, &rpc.Error{Code: methodNotFound, Message: method + " cannot be answered: " + why}
}
