package interact

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/instance"
	"github.com/ropewalk/ropewalk/core/rpc"
)

// suspendedCall is a call whose client speaks link.StatelessVersion and whose app speaks an older MCP revision. When
// the app asks something, the question becomes a result and the call is suspended: it remains in flight on the app's
// side until the client calls again with the input. It implements Asker.
type suspendedCall struct {
	user                  string // who made it
	owner, issued, server string
	method, target        string // target is the tool, prompt or resource of the call
	cancel                func()
	asked                 chan struct{} // capacity 1; signaled on each request from the app
	done                  chan struct{} // closed when result and err are set
	result                json.RawMessage
	err                   error

	mu     sync.Mutex
	open   map[string]openRequest
	count  int
	notify func(rpc.Notification) // notifies the waiting client request; nil while suspended
	timer  *time.Timer
	since  time.Time // when it was suspended; guarded by the mutex of suspendedCalls
}

// openRequest is a request from the app that waits for its response.
type openRequest struct {
	inputRequest
	response chan json.RawMessage // capacity 1
}

// mayAskForInput reports whether results of this method may ask for input.
func mayAskForInput(method string) bool {
	return method == "tools/call" || method == "prompts/get" || method == "resources/read"
}

// Ask implements Asker.
func (s *suspendedCall) Ask(ctx context.Context, q rpc.Question) (json.RawMessage, error) {
	r := openRequest{inputRequest{q.Method, q.Params}, make(chan json.RawMessage, 1)}
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

// doSuspendable makes a call that can outlive its client request if the app asks for input. It releases the sender's
// slot once the app has answered.
func (d *Dialog) doSuspendable(shared instance.Instance, first *Call) (json.RawMessage, error) {
	life, done, err := d.broker.o.Begin(context.WithoutCancel(first.ctx))
	if err != nil {
		d.slots.Release(first.Sender)
		return nil, err
	}
	s := &suspendedCall{
		user: cmp.Or(first.Sender, first.Owner), owner: first.Owner, issued: first.Issued, server: d.server(), method: first.Method, target: targetOf(first.Params),
		asked: make(chan struct{}, 1), done: make(chan struct{}), open: map[string]openRequest{}, notify: first.withClock(first.Notify),
	}
	c := first.Again(first.Params, first.Account)
	c.Client, c.Asker = NewClient("", false, requestCapabilities(first.Params)), s
	if c.Notify != nil {
		c.Notify = s.forward
	}
	d.begin(life, c)
	s.cancel = c.end
	go func() {
		defer done()
		defer close(s.done)
		defer d.slots.Release(c.Sender)
		defer s.cancel()
		defer func() { c.Params = nil }() // as in Do
		in, release, err := d.routeSuspendable(c, shared)
		if err != nil {
			s.err = err
			return
		}
		defer release()
		if s.result, s.err = c.send(in); s.err != nil {
			s.result, s.err = c.urlElicitationResult(d.CallError(life, in, c.Method, s.err))
		}
	}()
	return d.broker.suspended.wait(first.ctx, s)
}

// routeSuspendable picks the instance for a call that may be suspended. An app that asks questions gets an instance for
// this call alone.
func (d *Dialog) routeSuspendable(c *Call, shared instance.Instance) (in instance.Instance, release func(), err error) {
	if c.Client.abilities&d.known().asks == 0 {
		return shared, func() {}, nil
	}
	key := poolKey{dialog: d, session: "stateless " + c.Owner + " " + string(c.Client.capabilities), account: c.Account}
	p, release, err := d.broker.pool.acquire(c.ctx, key, true, c)
	switch {
	case errors.Is(err, errCannotStart) && c.ctx.Err() == nil:
		return shared, func() {}, nil
	case err != nil:
		return nil, nil, err
	}
	return p.instance, release, nil
}

// requestCapabilities returns the client capabilities that a link.StatelessVersion request declares; nil for none.
func requestCapabilities(params json.RawMessage) json.RawMessage {
	var p struct {
		Meta map[string]json.RawMessage `json:"_meta"`
	}
	_ = json.Unmarshal(params, &p) // a client without readable capabilities is not asked anything
	return p.Meta["io.modelcontextprotocol/clientCapabilities"]
}

// forward passes a notification to the client request that currently waits for the call, if there is one.
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

// respond passes responses to the app. It reports true while requests are still open. A response that is not an object
// counts as missing, and the client is asked for it again.
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

// targetOf returns the target of a request: the name of a tool or prompt, or the URI of a resource.
func targetOf(params json.RawMessage) string {
	var p struct{ Name, URI string }
	_ = json.Unmarshal(params, &p) // unreadable params have no target
	return p.Name + p.URI
}

const (
	statePrefix         = "ropewalk.suspended." // prefix of every requestState; part of the wire format
	maxSuspended        = 256
	maxSuspendedPerUser = 16
	suspendTimeout      = 10 * time.Minute // how long a call is kept for its client
	minSuspension       = time.Minute      // minimum time before another call may replace it
)

// suspendedCalls holds the calls that are waiting for input from their clients.
type suspendedCalls struct {
	prefix string // prefix of every requestState

	mu    sync.Mutex
	calls map[string]*suspendedCall // by requestState
}

func newSuspendedCalls(prefix string) *suspendedCalls {
	return &suspendedCalls{prefix: prefix, calls: map[string]*suspendedCall{}}
}

// wait waits for the call's result or its next requests, on behalf of one client request.
func (c *suspendedCalls) wait(ctx context.Context, s *suspendedCall) (json.RawMessage, error) {
	for {
		select {
		case <-s.done:
			return s.result, s.err
		case <-ctx.Done():
			s.cancel()
			return nil, context.Cause(ctx)
		case <-s.asked:
			if s.hasOpenRequests() { // the request that signaled may have been answered in the meantime
				return c.suspend(s)
			}
		}
	}
}

// suspend stores the call and returns the result that asks its client for input.
func (c *suspendedCalls) suspend(s *suspendedCall) (json.RawMessage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notify = nil
	requests := make(map[string]inputRequest, len(s.open))
	for name, r := range s.open {
		requests[name] = r.inputRequest
	}
	state := c.prefix + rand.Text()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.evictFor(s.user) {
		s.cancel()
		return nil, core.Errorf(core.CodeUnavailable, "too many calls are waiting for input from their clients").WithRetryAfter(time.Minute)
	}
	c.calls[state], s.since = s, time.Now()
	s.timer = time.AfterFunc(suspendTimeout, func() {
		if c.remove(state) != nil {
			s.cancel()
		}
	})
	return json.Marshal(map[string]any{"resultType": "input_required", "inputRequests": requests, "requestState": state})
}

// evictFor makes room for another call of a user. If the user (across all API keys) or the server has reached its
// limit, it cancels the call that has been waiting longest, because clients may never come back. It returns false if
// that call is too recent to cancel. The caller holds the mutex.
func (c *suspendedCalls) evictFor(user string) bool {
	userFull := c.countOf(user) >= maxSuspendedPerUser
	if !userFull && len(c.calls) < maxSuspended {
		return true
	}
	var oldest string
	for state, s := range c.calls {
		if (!userFull || s.user == user) && (oldest == "" || s.since.Before(c.calls[oldest].since)) {
			oldest = state
		}
	}
	s := c.calls[oldest]
	if time.Since(s.since) < minSuspension {
		return false
	}
	delete(c.calls, oldest)
	s.timer.Stop()
	s.cancel()
	return true
}

// countOf returns the number of suspended calls of a user. The caller holds the mutex.
func (c *suspendedCalls) countOf(user string) (n int) {
	for _, s := range c.calls {
		if s.user == user {
			n++
		}
	}
	return n
}

func (c *suspendedCalls) remove(state string) *suspendedCall {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.calls[state]
	delete(c.calls, state)
	return s
}

// removeIf removes and returns the call with this requestState if it matches; otherwise it returns nil.
func (c *suspendedCalls) removeIf(state string, match func(*suspendedCall) bool) *suspendedCall {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.calls[state]
	if s == nil || !match(s) {
		return nil
	}
	delete(c.calls, state)
	return s
}

// SuspendedCalls returns the number of calls that are waiting for input from their clients.
func (b *Broker) SuspendedCalls() int {
	b.suspended.mu.Lock()
	defer b.suspended.mu.Unlock()
	return len(b.suspended.calls)
}
