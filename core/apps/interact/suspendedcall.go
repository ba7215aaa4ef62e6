package interact

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/link"
	"github.com/ropewalk/ropewalk/core/rpc"
)

// ErrTimeout is the cause of the context of a call whose app was silent for too long.
var ErrTimeout = errors.New("the app did not answer in time")

// suspendedCall is a call whose app speaks an older MCP revision than its client. What the app asks
// becomes a result, with which the call is suspended: the app's call stays in flight until the client
// calls again with the input. It is an Asker.
type suspendedCall struct {
	owner, server, method string
	target                string // the tool, prompt or resource that is called
	cancel                context.CancelFunc
	asked                 chan struct{} // holds one; receives at each request of the app
	done                  chan struct{} // closed when result and err are set
	result                json.RawMessage
	err                   error

	mu     sync.Mutex
	open   map[string]openRequest
	count  int
	notify func(rpc.Notification) // of the request that waits; nil while suspended
	timer  *time.Timer
	since  time.Time // when it was suspended; guarded by the mutex of suspendedCalls
}

// openRequest is a request of the app that waits for its response.
type openRequest struct {
	inputRequest
	response chan json.RawMessage // holds one
}

// mayAskForInput reports whether the result of a method may ask for input.
func mayAskForInput(method string) bool {
	return method == "tools/call" || method == "prompts/get" || method == "resources/read"
}

// Ask implements Asker.
func (s *suspendedCall) Ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	r := openRequest{inputRequest{method, params}, make(chan json.RawMessage, 1)}
	s.mu.Lock()
	s.count++
	name := fmt.Sprintf("q%d", s.count)
	s.open[name] = r
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.open, name)
		s.mu.Unlock()
	}()
	select {
	case s.asked <- struct{}{}:
	default:
	}
	select {
	case response := <-r.response:
		return response, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// doSuspendable makes a call that outlives its request if the app asks for input.
func (d *Dialog) doSuspendable(ctx context.Context, shared Instance, c Call) (json.RawMessage, error) {
	if !d.app.AcquireSlot() {
		return nil, unavailable(time.Second, "app %s is busy: it has too many calls in flight", d.app.Key().Name)
	}
	life, done, err := d.broker.o.Begin(context.WithoutCancel(ctx))
	if err != nil {
		d.app.ReleaseSlot()
		return nil, err
	}
	life, cancel := context.WithCancelCause(life)
	s := &suspendedCall{
		owner: c.Owner, server: d.server(), method: c.Method, target: targetOf(c.Params), cancel: func() { cancel(nil) },
		asked: make(chan struct{}, 1), done: make(chan struct{}), open: map[string]openRequest{}, notify: c.Notify,
	}
	f := &InFlight{parent: life, client: NewClient("", false, requestCapabilities(c.Params)), asker: s, timeout: d.broker.o.CallTimeout}
	f.StartClock(func() { cancel(ErrTimeout) })
	if c.Notify != nil {
		c.Notify = f.WithClock(s.forward)
	}
	go func() {
		defer done()
		defer close(s.done)
		defer d.app.ReleaseSlot()
		defer cancel(nil)
		defer f.Finish()
		in, release, err := d.routeSuspendable(life, shared, c.Owner, f)
		if err != nil {
			s.err = err
			return
		}
		defer release()
		s.result, s.err = call(life, in, link.Request{Method: c.Method, Target: c.Target, Params: c.Params, Notify: c.Notify, Sender: c.User, Caller: f}, c.AsTask, f)
		if s.err != nil {
			s.result, s.err = f.urlElicitationResult(d.app.CallError(context.WithoutCancel(life), life, in, c.Method, s.err))
		}
	}()
	return d.broker.suspended.wait(ctx, s)
}

// routeSuspendable picks the instance for a call that may be suspended: an app that asks gets one for
// this call alone.
func (d *Dialog) routeSuspendable(ctx context.Context, shared Instance, owner string, f *InFlight) (in Instance, release func(), err error) {
	if f.client.abilities&d.known().asks == 0 {
		return shared, func() {}, nil
	}
	key := poolKey{dialog: d, session: "stateless " + owner + " " + string(f.client.capabilities)}
	p, release, err := d.broker.pool.acquire(ctx, key, true, f)
	switch {
	case errors.Is(err, errCannotStart) && ctx.Err() == nil:
		return shared, func() {}, nil
	case err != nil:
		return nil, nil, err
	}
	return p.instance, release, nil
}

// requestCapabilities returns the client capabilities that a request of link.StatelessVersion declares.
func requestCapabilities(params json.RawMessage) json.RawMessage {
	var p struct {
		Meta map[string]json.RawMessage `json:"_meta"`
	}
	_ = json.Unmarshal(params, &p) // a client that declares nothing readable is asked nothing
	return p.Meta["io.modelcontextprotocol/clientCapabilities"]
}

// forward passes a notification on to the request that waits for the call.
func (s *suspendedCall) forward(n rpc.Notification) {
	s.mu.Lock()
	notify := s.notify
	s.mu.Unlock()
	if notify != nil {
		notify(n)
	}
}

func (s *suspendedCall) hasOpenRequests() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open) > 0
}

// respond hands responses to the app; unanswered is true when requests are still open. A response
// that is not an object answers nothing, and is asked for again.
func (s *suspendedCall) respond(responses map[string]json.RawMessage, notify func(rpc.Notification)) (unanswered bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timer.Stop()
	s.notify = notify
	for name, r := range s.open {
		response, ok := responses[name]
		if !ok || len(response) == 0 || response[0] != '{' {
			unanswered = true
			continue
		}
		delete(s.open, name)
		r.response <- response
	}
	return unanswered
}

// targetOf returns what a request calls: the name of a tool or a prompt, or the URI of a resource.
func targetOf(params json.RawMessage) string {
	var p struct{ Name, URI string }
	_ = json.Unmarshal(params, &p) // unreadable params name nothing
	return p.Name + p.URI
}

// server names the app among those of all workspaces.
func (d *Dialog) server() string { return d.app.Key().Workspace + "/" + d.app.Key().Name }

func unavailable(after time.Duration, format string, args ...any) error {
	return core.Errorf(core.CodeUnavailable, format, args...).WithRetryAfter(after)
}
