package interact

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/instance"
	"github.com/ropewalk/ropewalk/core/link"
	"github.com/ropewalk/ropewalk/core/link/remote"
	"github.com/ropewalk/ropewalk/core/rpc"
)

// ErrTimeout is the cancellation cause of a call whose app was silent for longer than Options.CallTimeout.
var ErrTimeout = errors.New("the app did not answer in time")

// Call is one call to an app. It becomes one or more requests. A clock cancels the call if the app is silent for too
// long. The clock stops while the client is being asked something, because a person may need more time than apps are
// given.
type Call struct {
	link.Request
	Account string  // the linked account to call with; "" for an app without accounts
	Client  *Client // the client on whose behalf the call is made; nil if there is no client to ask
	Asker   Asker   // asks Client while the call is in flight; nil if the client cannot be asked
	Owner   string  // identifies a stateless client, the only one that can resume its suspended calls
	Issued  string  // how servers of the previous version identify the owner: by the issuer and the subject
	AsTask  bool    // the tool can only be called as a task (taskSupport: required)
	Follow  *Follow // lets an app that speaks link.StatelessVersion answer with a task; nil if the client does not accept tasks

	// Recheck checks a call again that has waited for the app to start, because its caller may have lost access. nil
	// means no check.
	Recheck func(context.Context) error

	// Set while the call is in flight.
	dialog *Dialog
	ctx    context.Context //nolint:containedctx // cancelled when the call ends; ErrTimeout if the app was silent
	cancel context.CancelCauseFunc
	mu     sync.Mutex // guards clock and open
	clock  *time.Timer
	open   int // questions that the client has not answered yet
}

// Again returns a copy of c that can be made even if c has been made already. It needs its own Params, because making a
// call clears them.
func (c *Call) Again(params json.RawMessage, account string) *Call {
	r := c.Request
	r.Params = params
	return &Call{
		Request: r, Account: account, Client: c.Client, Asker: c.Asker, Owner: c.Owner, Issued: c.Issued,
		AsTask: c.AsTask, Follow: c.Follow, Recheck: c.Recheck,
	}
}

// Asker passes an app's question to the client of a call.
type Asker interface {
	// Ask returns the client's raw answer. An *rpc.Error is passed to the app unchanged. ctx is cancelled when the app
	// cancels its request, and when the call that the question belongs to ends.
	Ask(ctx context.Context, q rpc.Question) (json.RawMessage, error)
}

// Do makes a call on the right instance for its client: the shared one, or one from the session pool. A call is
// cancelled when its app has been silent for Options.CallTimeout. Progress notifications reset this clock, and it stops
// while the caller's client is answering a question. Do releases the slot that the sender has taken, once the app has
// answered.
func (d *Dialog) Do(ctx context.Context, shared instance.Instance, c *Call) (result json.RawMessage, err error) {
	held := true
	defer func() {
		c.Params = nil // they may be large, and the session pool keeps the newest call of an instance
		if held {
			d.slots.Release(c.Sender)
		}
	}()
	d.begin(ctx, c)
	defer c.end()
	in, release, err := d.route(c, shared)
	if err != nil {
		return nil, d.CallError(ctx, shared, c.Method, err)
	}
	defer release()
	stateless := c.Client != nil && c.Client.stateless
	switch {
	case stateless && !in.Info().Stateless && mayAskForInput(c.Method):
		held = false // the call may outlive this request
		result, err = d.doSuspendable(in, c)
	case !stateless && in.Info().Stateless:
		result, err = c.sendWithInput(in)
	default:
		result, err = c.send(in)
	}
	if err != nil {
		return nil, d.CallError(ctx, in, c.Method, err)
	}
	return result, nil
}

// send makes the call as a single request, or as a task. Apps that speak link.StatelessVersion have no tools that can
// only be called as tasks.
func (c *Call) send(in instance.Instance) (json.RawMessage, error) {
	r := c.request()
	switch stateless := in.Info().Stateless; {
	case stateless && c.Follow != nil:
		return c.sendFollowed(in, r)
	case c.Follow != nil && c.Follow.ID != "":
		return nil, &rpc.Error{Code: rpc.CodeInvalidParams, Message: "the app no longer supports tasks"}
	case c.AsTask && !stateless:
		return c.sendAsTask(in, r)
	}
	return in.Call(c.ctx, r)
}

// request returns the call as a request. Its notifications reset the clock.
func (c *Call) request() link.Request {
	r := c.Request
	r.Caller, r.Notify = c, c.withClock(c.Notify)
	return r
}

// route picks the instance for a call. This is the shared instance, unless the client is stateless and the instance is
// not, or the app asks questions that this client can answer. An app that cannot run twice serves every client with one
// instance.
func (d *Dialog) route(c *Call, shared instance.Instance) (in instance.Instance, release func(), err error) {
	keep := func() {}
	if c.Account != "" {
		return d.routeAccount(c)
	}
	key, pooled := d.poolKey(shared, c.Client, c.Asker)
	if !pooled {
		return shared, keep, nil
	}
	p, release, err := d.broker.pool.acquire(c.ctx, key, false, c)
	switch {
	case errors.Is(err, errCannotStart) && c.ctx.Err() == nil:
		return shared, keep, nil
	case err != nil:
		return nil, nil, err
	case c.Client.stateless && !p.instance.Info().Stateless: // the instance completed the stateful handshake after all
		d.learn(func(known *bundleCapabilities) { known.onlySessions = true })
		release()
		d.broker.pool.discard(p)
		return shared, keep, nil
	}
	return p.instance, release, nil
}

// routeAccount picks the instance of an account. If the app asks its clients questions, the client's session gets its
// own instance.
func (d *Dialog) routeAccount(c *Call) (in instance.Instance, release func(), err error) {
	key := poolKey{dialog: d, account: c.Account}
	if c.Client != nil && c.Asker != nil && c.Client.abilities&d.known().asks != 0 {
		key.session = c.Client.session
	}
	p, release, err := d.broker.pool.acquire(c.ctx, key, false, c)
	if err != nil {
		return nil, nil, d.accountError(err)
	}
	return p.instance, release, nil
}

// accountError returns the error for an account's instance that could not be started.
func (d *Dialog) accountError(err error) error {
	failure, ok := errors.AsType[*instance.Failure](err)
	if _, known := errors.AsType[*core.Error](err); known || !ok {
		return err
	}
	return core.Wrap(core.CodeUnavailable, err, "app "+d.key.Name+" could not be reached using the account: "+failure.Reason)
}

// Connect starts the instance of an account, if there is none yet, ahead of the first call.
func (d *Dialog) Connect(ctx context.Context, account string) error {
	c := &Call{Account: account}
	d.begin(ctx, c)
	defer c.end()
	_, release, err := d.routeAccount(c)
	if err != nil {
		return err
	}
	release()
	return nil
}

// EndAccount shuts down all instances that use an account, in any app, and waits until they have stopped.
func (b *Broker) EndAccount(account string) {
	b.pool.shutdownAll(func(k poolKey) bool { return k.account == account && account != "" })
}

// poolKey returns the key of the session pool's instance that serves a call. pooled is false if the shared instance
// serves it.
func (d *Dialog) poolKey(shared instance.Instance, client *Client, asker Asker) (key poolKey, pooled bool) {
	key.dialog = d
	if client == nil || shared.Info().Stateless {
		return key, false
	}
	known := d.known()
	switch {
	case client.stateless:
		return key, !known.onlySessions
	case asker != nil && client.session != "" && client.abilities&known.asks != 0:
		key.session = client.session
		return key, true
	}
	return key, false
}

// begin starts the clock of a call. The caller must call end when the call has ended.
func (d *Dialog) begin(ctx context.Context, c *Call) {
	ctx, cancel := context.WithCancelCause(ctx)
	c.dialog, c.ctx, c.cancel, c.open = d, ctx, cancel, 0
	c.clock = time.AfterFunc(d.broker.o.CallTimeout, func() { cancel(ErrTimeout) })
}

func (c *Call) end() {
	c.cancel(nil)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clock.Stop() // later progress does not restart the clock, because the context is cancelled
}

// Session implements link.Caller.
func (c *Call) Session() string {
	if c.Client == nil {
		return ""
	}
	return c.Client.session
}

// Context implements link.Caller.
func (c *Call) Context() context.Context { return c.ctx }

// Hold implements link.Caller.
func (c *Call) Hold() (release func()) {
	c.addOpen(1)
	return func() { c.addOpen(-1) }
}

func (c *Call) addOpen(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open += n; c.open > 0 {
		c.clock.Stop()
	} else {
		c.restartClock()
	}
}

// resetClock is called on each progress notification, which shows that the app is still alive.
func (c *Call) resetClock() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == 0 {
		c.restartClock()
	}
}

// restartClock restarts the clock, unless the call has ended. The caller holds the mutex.
func (c *Call) restartClock() {
	if c.ctx.Err() == nil {
		c.clock.Reset(c.dialog.broker.o.CallTimeout)
	}
}

// withClock wraps notify so that each notification resets the clock. It returns nil if notify is nil.
func (c *Call) withClock(notify func(rpc.Notification)) func(rpc.Notification) {
	if notify == nil {
		return nil
	}
	return func(n rpc.Notification) {
		c.resetClock()
		notify(n)
	}
}

// codeHeaderMismatch is the error code that a remote app returns if the HTTP headers are not those that its schemas
// require (MCP 2026-07-28).
const codeHeaderMismatch = -32020

// CallError turns the error of a request into the error for the caller. This is core.CodeUnavailable if the app died,
// was too slow, sent too much or has too many requests in flight, and core.CodeBadRequest if params is not an object.
// An *rpc.Error is returned as the app sent it. If the caller gave up, the error is ctx's.
func (d *Dialog) CallError(ctx context.Context, in instance.Instance, method string, err error) error {
	name := d.key.Name
	if rpcErr, ok := errors.AsType[*rpc.Error](err); ok {
		if rpcErr.Code == codeHeaderMismatch { // its schemas may have changed: list the tools again
			in.AddListChange(core.KindTools)
		}
		return rpcErr
	}
	known, ok := errors.AsType[*core.Error](err)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case ok:
		return known
	case errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, ErrTimeout):
		text := "app " + name + " did not answer " + method + " within " + d.broker.o.CallTimeout.String() + " (tools.callTimeoutSeconds); the call was cancelled"
		if unmatched, ok := errors.AsType[*link.UnmatchedError](err); ok {
			text += "; " + unmatched.Sentence()
		}
		return core.Wrap(core.CodeUnavailable, err, text)
	case errors.Is(err, link.ErrClosed) || isClosed(in.Done()):
		return core.Wrap(core.CodeUnavailable, err, "app "+name+" stopped while the call was running; the call was not repeated").WithRetryAfter(time.Second)
	case errors.Is(err, link.ErrTooLarge):
		return core.Wrap(core.CodeUnavailable, err, fmt.Sprintf("app %s: %v: the limit is %d bytes (limits.answerBytes)", name, link.ErrTooLarge, d.broker.o.MaxAnswer))
	case errors.Is(err, link.ErrParams):
		return core.Wrap(core.CodeBadRequest, err, link.ErrParams.Error())
	case errors.Is(err, link.ErrMalformed):
		return core.Wrap(core.CodeUnavailable, err, "app "+name+": "+err.Error())
	case errors.Is(err, link.ErrBusy):
		return core.Wrap(core.CodeUnavailable, err, "app "+name+": "+link.ErrBusy.Error())
	}
	if r, ok := errors.AsType[*remote.Error](err); ok {
		return core.Wrap(core.CodeUnavailable, err, "app "+name+" could not be called: "+r.Error())
	}
	d.log.Warn("call to an app failed", "method", method, "error", err)
	return core.Wrap(core.CodeUnavailable, err, "app "+name+" could not be called")
}
