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

// ErrTimeout is the cause of the context of a call whose app was silent for too long.
var ErrTimeout = errors.New("the app did not answer in time")

// Call is one call of an app, which becomes one request or several.
type Call struct {
	link.Request
	Account string  // the linked account that the call is made with; "" for an app without accounts
	Client  *Client // the client that the call is made for; nil for one that cannot be asked anything
	Asker   Asker   // asks Client while the call is in flight; nil when it cannot be asked
	Owner   string  // the identity of a stateless client: only the owner can resume its suspended calls
	AsTask  bool    // the tool that is called can only be called as a task (taskSupport: required)
}

// Asker asks the client of a call what its app asks.
type Asker interface {
	// Ask returns the raw answer. A *rpc.Error is passed to the app as it is. ctx ends when the app cancels its
	// request, and when the call that it belongs to ends.
	Ask(ctx context.Context, q rpc.Question) (json.RawMessage, error)
}

// Do makes a call on the instance that is right for its client: shared, or one of the session pool. A call whose app
// was silent for Options.CallTimeout is cancelled. Progress that the caller receives resets this clock, and it stands
// still while the caller's own client is asked something.
func (d *Dialog) Do(ctx context.Context, shared instance.Instance, c Call) (result json.RawMessage, err error) {
	f, end := d.begin(ctx, c.Client, c.Asker)
	defer end()
	f.account = c.Account
	in, release, err := d.route(f, shared)
	if err != nil {
		return nil, d.CallError(ctx, shared, c.Method, err)
	}
	defer release()
	c.Notify = f.withClock(c.Notify)
	stateless := c.Client != nil && c.Client.stateless
	switch {
	case stateless && !in.Info().Stateless && mayAskForInput(c.Method):
		result, err = d.doSuspendable(f.ctx, in, c)
	case !stateless && in.Info().Stateless:
		result, err = f.sendWithInput(in, c)
	default:
		result, err = f.send(in, c)
	}
	if err != nil {
		return nil, d.CallError(ctx, in, c.Method, err)
	}
	return result, nil
}

// send makes a call of one request, or of a task. Apps of link.StatelessVersion have no tools that are only called as
// tasks.
func (f *inFlight) send(in instance.Instance, c Call) (json.RawMessage, error) {
	r := c.Request
	r.Caller = f
	if c.AsTask && !in.Info().Stateless {
		return f.sendAsTask(in, r)
	}
	return in.Call(f.ctx, r)
}

// route picks the instance for a call: the shared one, unless the client speaks the other kind of
// MCP revision or is one that the app asks. An app that cannot run twice serves all with one instance.
func (d *Dialog) route(f *inFlight, shared instance.Instance) (in instance.Instance, release func(), err error) {
	keep := func() {}
	if f.account != "" {
		return d.routeAccount(f)
	}
	key, pooled := d.poolKey(shared, f.client, f.asker)
	if !pooled {
		return shared, keep, nil
	}
	p, release, err := d.broker.pool.acquire(f.ctx, key, false, f)
	switch {
	case errors.Is(err, errCannotStart) && f.ctx.Err() == nil:
		return shared, keep, nil
	case err != nil:
		return nil, nil, err
	case f.client.stateless && !p.instance.Info().Stateless: // it completed the handshake after all
		d.learn(func(c *bundleCapabilities) { c.onlySessions = true })
		release()
		d.broker.pool.discard(p)
		return shared, keep, nil
	}
	return p.instance, release, nil
}

// routeAccount picks the instance of an account: that of the client's session where the app asks its clients.
func (d *Dialog) routeAccount(f *inFlight) (in instance.Instance, release func(), err error) {
	key := poolKey{dialog: d, account: f.account}
	if f.client != nil && f.asker != nil && f.client.abilities&d.known().asks != 0 {
		key.session = f.client.session
	}
	p, release, err := d.broker.pool.acquire(f.ctx, key, false, f)
	if err != nil {
		return nil, nil, d.accountError(err)
	}
	return p.instance, release, nil
}

// accountError is the error of an instance of an account that could not be started.
func (d *Dialog) accountError(err error) error {
	failure, ok := errors.AsType[*instance.Failure](err)
	if _, known := errors.AsType[*core.Error](err); known || !ok {
		return err
	}
	return core.Wrap(core.CodeUnavailable, err, "app "+d.key.Name+" could not be reached with the account: "+failure.Reason)
}

// Connect starts the instance of an account, if there is none, before it is called.
func (d *Dialog) Connect(ctx context.Context, account string) error {
	f, end := d.begin(ctx, nil, nil)
	defer end()
	f.account = account
	_, release, err := d.routeAccount(f)
	if err != nil {
		return err
	}
	release()
	return nil
}

// EndAccount ends the instances of an account of any app, and waits for that.
func (b *Broker) EndAccount(account string) {
	b.pool.shutdownAll(func(k poolKey) bool { return k.account == account && account != "" })
}

// poolKey returns which instance of the session pool a call belongs to; pooled is false when it
// belongs to the shared instance.
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

// inFlight is a call in flight: its clock, and how its client is asked. The clock ends the call when the app is silent
// for too long. It stands still while the client is asked something, because a person may take longer than an app may
// be silent.
type inFlight struct {
	dialog  *Dialog
	account string          // that the call is made with; "" for none
	client  *Client         // nil when nobody can be asked
	asker   Asker           // nil when the client cannot be asked
	ctx     context.Context //nolint:containedctx // ends with the call, by ErrTimeout when the app was silent

	mu    sync.Mutex
	clock *time.Timer
	open  int // questions that the client has not answered yet
}

// begin starts the clock of a call; end must be called when the call is over.
func (d *Dialog) begin(ctx context.Context, client *Client, asker Asker) (f *inFlight, end func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	f = &inFlight{dialog: d, client: client, asker: asker, ctx: ctx}
	f.clock = time.AfterFunc(d.broker.o.CallTimeout, func() { cancel(ErrTimeout) })
	return f, func() {
		cancel(nil)
		f.mu.Lock()
		defer f.mu.Unlock()
		f.clock.Stop() // what comes later does not set it again
	}
}

// Session implements link.Caller.
func (f *inFlight) Session() string {
	if f.client == nil {
		return ""
	}
	return f.client.session
}

// Context implements link.Caller.
func (f *inFlight) Context() context.Context { return f.ctx }

// Hold implements link.Caller.
func (f *inFlight) Hold() (release func()) {
	f.addOpen(1)
	return func() { f.addOpen(-1) }
}

func (f *inFlight) addOpen(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.open += n; f.open > 0 {
		f.clock.Stop()
	} else {
		f.restartClock()
	}
}

// resetClock is called on progress: the app is not silent.
func (f *inFlight) resetClock() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.open == 0 {
		f.restartClock()
	}
}

// restartClock sets the clock anew, unless the call is over. mu is held.
func (f *inFlight) restartClock() {
	if f.ctx.Err() == nil {
		f.clock.Reset(f.dialog.broker.o.CallTimeout)
	}
}

// withClock returns notify, resetting the clock at each notification; nil for nil.
func (f *inFlight) withClock(notify func(rpc.Notification)) func(rpc.Notification) {
	if notify == nil {
		return nil
	}
	return func(n rpc.Notification) {
		f.resetClock()
		notify(n)
	}
}

// codeHeaderMismatch is the error code of a remote app whose HTTP headers are not those that its
// schemas ask for (MCP 2026-07-28).
const codeHeaderMismatch = -32020

// CallError returns what became of a request without a result: core.CodeUnavailable when the app died, was too slow,
// sent too much or has too many requests in flight; core.CodeBadRequest for params that are not an object; *rpc.Error
// as the app sent it; ctx's error when the caller gave up.
func (d *Dialog) CallError(ctx context.Context, in instance.Instance, method string, err error) error {
	name := d.key.Name
	if rpcErr, ok := errors.AsType[*rpc.Error](err); ok {
		if rpcErr.Code == codeHeaderMismatch { // its schemas may have changed: the next call has the headers they ask for
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
		text := "app " + name + " did not answer " + method + " within " + d.broker.o.CallTimeout.String() + "; the call was cancelled"
		if astray, ok := errors.AsType[*link.AstrayError](err); ok {
			text += "; " + astray.Sentence()
		}
		return core.Wrap(core.CodeUnavailable, err, text)
	case errors.Is(err, link.ErrClosed) || isClosed(in.Done()):
		return core.Wrap(core.CodeUnavailable, err, "app "+name+" stopped while the call was running; it was not repeated").WithRetryAfter(time.Second)
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
