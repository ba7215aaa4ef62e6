package interact

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/instance"
	"github.com/ropewalk/ropewalk/core/link"
	"github.com/ropewalk/ropewalk/core/rpc"
)

// pool is the session pool: the instances that running apps have in addition to their shared one. An app has one for
// each session whose client it asks questions, and one for stateless clients if the shared instance is stateful,
// because one connection cannot serve both kinds well. Instances start when a call needs them. They stop with their
// session, with their app, or after some time without use. Their number is limited.
type pool struct {
	o Options

	mu     sync.Mutex
	open   map[poolKey]*pooled
	ending sync.WaitGroup
}

// restartPause is how long to wait before trying again to start an instance that failed to start.
const restartPause = time.Minute

// The instance of an account is a connection, which can fail briefly, so the pause is short. There is one for each
// account in use.
const (
	accountPause        = time.Second
	maxAccountInstances = 1024
)

// errCannotStart means that another instance of an app could not be started. Some apps cannot run twice.
var errCannotStart = errors.New("another instance of the app could not be started")

// poolKey says whom an instance serves: one session, or all stateless clients if session is "". If account is set, the
// instance serves only calls with that account.
type poolKey struct {
	dialog  *Dialog
	session string
	account string
}

// acquire returns the instance for key and starts it if necessary. The caller must call release when the call has
// ended. If exclusive is set, the call gets its own instance; several can exist for one key. The error is the cause of
// ctx, core.CodeUnavailable if the app is not running or there are too many instances, or errCannotStart.
func (p *pool) acquire(ctx context.Context, key poolKey, exclusive bool, c *Call) (x *pooled, release func(), err error) {
	if x, err = p.reserve(key, exclusive, c); err != nil {
		return nil, nil, err
	}
	release = func() { p.release(x) }
	select {
	case <-x.ready:
		err = x.err
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil {
		release()
		return nil, nil, err
	}
	return x, release, nil
}

// reserve returns the instance for key and adds a user to it. The instance may still be starting.
func (p *pool) reserve(key poolKey, exclusive bool, c *Call) (*pooled, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for base, i := key.session, 1; exclusive && p.open[key] != nil && p.open[key].users > 0; i++ {
		key.session = fmt.Sprintf("%s %d", base, i)
	}
	x := p.open[key]
	if x != nil && x.isOver() {
		p.remove(x)
		x = nil
	}
	if x == nil && !key.dialog.app.IsRunning() {
		return nil, unavailable(time.Second, "app %s is not running", key.dialog.key.Name)
	}
	if x == nil || x.users == 0 {
		if err := p.checkShare(key, c.Sender); err != nil {
			return nil, err
		}
	}
	if x == nil {
		if p.isFull(key) && !p.evictIdle(key) {
			return nil, unavailable(5*time.Second, "app %s needs an instance for this session, but all %d instances of the session pool are in use", key.dialog.key.Name, p.maxInstances(key))
		}
		x = p.start(key, exclusive, c)
	}
	if x.users == 0 {
		x.user = c.Sender
	}
	x.newest.Store(c)
	x.users++
	if x.timer != nil {
		x.timer.Stop()
		x.timer = nil
	}
	return x, nil
}

// start starts an instance in the background. The caller holds the mutex.
func (p *pool) start(key poolKey, exclusive bool, c *Call) *pooled {
	x := &pooled{key: key, exclusive: exclusive, ready: make(chan struct{})}
	x.newest.Store(c)
	p.open[key] = x
	ctx, cancel := context.WithCancel(p.o.Life)
	x.cancel = cancel
	p.ending.Go(func() {
		defer cancel()
		defer close(x.ready)
		if x.instance, x.err = key.dialog.app.StartFor(ctx, x.session()); x.err != nil {
			x.err = fmt.Errorf("%w: %w", errCannotStart, x.err)
			x.failedAt = time.Now()
		}
	})
	return x
}

// maxInstances returns the limit on instances. Instances of accounts and of sessions are counted separately.
func (p *pool) maxInstances(key poolKey) int {
	if key.account != "" {
		return maxAccountInstances
	}
	return p.o.MaxInstances
}

// checkShare returns core.CodeRateLimited if a user already uses half of the allowed instances, or one if only one is
// allowed, and asks for another. The user's share of all MCP sessions is also half, and each session may need an
// instance. An instance that serves all stateless clients is not counted for anybody.
func (p *pool) checkShare(key poolKey, user string) error {
	if user == "" || key.session == "" && key.account == "" {
		return nil
	}
	share, n := max(1, p.maxInstances(key)/2), 0
	for other, x := range p.open {
		if x.users > 0 && x.user == user && (other.session != "" || other.account != "") && (other.account == "") == (key.account == "") {
			n++
		}
	}
	if n < share {
		return nil
	}
	limit := "half of mcp.maxInstances"
	if key.account != "" {
		limit = "for linked accounts"
	}
	return core.Errorf(core.CodeRateLimited, "app %s needs another instance, but your calls use %d: the limit is %d per user (%s)", key.dialog.key.Name, n, share, limit).
		WithRetryAfter(5 * time.Second)
}

// isFull reports whether the limit on instances is reached.
func (p *pool) isFull(key poolKey) bool {
	n := 0
	for other := range p.open {
		if (other.account == "") == (key.account == "") {
			n++
		}
	}
	return n >= p.maxInstances(key)
}

// evictIdle removes the instance of the same class (accounts or sessions) that has been unused for longest. It reports
// whether there was one.
func (p *pool) evictIdle(key poolKey) bool {
	var oldest *pooled
	for other, x := range p.open {
		if x.users == 0 && (other.account == "") == (key.account == "") && (oldest == nil || x.unusedSince.Before(oldest.unusedSince)) {
			oldest = x
		}
	}
	if oldest != nil {
		p.remove(oldest)
	}
	return oldest != nil
}

func (p *pool) release(x *pooled) {
	p.mu.Lock()
	defer p.mu.Unlock()
	x.users--
	if x.users > 0 || p.open[x.key] != x {
		return
	}
	x.unusedSince = time.Now()
	x.timer = time.AfterFunc(p.o.InstanceIdle, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.open[x.key] == x && x.users == 0 && time.Since(x.unusedSince) >= p.o.InstanceIdle {
			p.remove(x)
		}
	})
}

// discard removes an instance that turned out to be useless.
func (p *pool) discard(x *pooled) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open[x.key] == x {
		p.remove(x)
	}
}

// remove takes an instance out of the pool and shuts it down in the background. The caller holds the mutex.
func (p *pool) remove(x *pooled) {
	delete(p.open, x.key)
	if x.timer != nil {
		x.timer.Stop()
	}
	x.cancel()
	p.ending.Go(func() { p.shutdown(x) })
}

func (p *pool) shutdown(x *pooled) {
	<-x.ready
	if x.instance == nil {
		return
	}
	if err := x.instance.Shutdown(p.o.Grace); err != nil {
		x.key.dialog.log.Error("could not stop a session's instance", "error", err)
	}
}

// shutdownAll shuts down the instances that match, and waits until they have stopped.
func (p *pool) shutdownAll(match func(poolKey) bool) {
	p.mu.Lock()
	var ending sync.WaitGroup
	for key, x := range p.open {
		if !match(key) {
			continue
		}
		delete(p.open, key)
		if x.timer != nil {
			x.timer.Stop()
		}
		x.cancel()
		ending.Go(func() { p.shutdown(x) })
	}
	p.mu.Unlock()
	ending.Wait()
}

// find returns the started instances that match.
func (p *pool) find(match func(poolKey) bool) (found []instance.Instance) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, x := range p.open {
		if match(key) && isClosed(x.ready) && x.err == nil {
			found = append(found, x.instance)
		}
	}
	return found
}

// pooled is one instance of the session pool.
type pooled struct {
	key       poolKey
	exclusive bool               // it serves one call at a time
	cancel    context.CancelFunc // cancels its start
	ready     chan struct{}      // closed when instance or err is set
	instance  instance.Instance
	err       error
	failedAt  time.Time            // when its start failed
	newest    atomic.Pointer[Call] // the newest call: its client gets the requests that do not belong to a call

	users       int         // calls in flight; the pool's mutex guards this and the fields below
	user        string      // the user whose call came first since it was last unused
	unusedSince time.Time   // when the last call ended
	timer       *time.Timer // shuts down the instance once it has been unused for long enough; nil while in use
}

// isOver reports whether the instance has stopped, or failed so long ago that a new start may be tried.
func (x *pooled) isOver() bool {
	switch {
	case !isClosed(x.ready):
		return false
	case x.err != nil:
		if x.key.account != "" {
			return time.Since(x.failedAt) > accountPause
		}
		return time.Since(x.failedAt) > restartPause
	}
	return isClosed(x.instance.Done())
}

// session describes what the instance is started for.
func (x *pooled) session() Session {
	if x.key.session == "" {
		return Session{Account: x.key.account, OnRequest: x.key.dialog.AnswerShared}
	}
	return Session{ID: x.key.session, Account: x.key.account, OneCall: x.exclusive, ClientCapabilities: x.newest.Load().Client.capabilities, OnRequest: x.answer}
}

// answer answers a question from the instance of one session. The question goes to that session's client, through the
// newest of the calls that it may belong to.
func (x *pooled) answer(ctx context.Context, q rpc.Question, callers []link.Caller) (json.RawMessage, error) {
	var asked link.Caller = x.newest.Load()
	if n := len(callers); n > 0 {
		asked = callers[n-1]
	}
	return asked.Answer(ctx, q, callers)
}

// EndSession shuts down all instances that apps have for a session, and waits until they have stopped.
func (b *Broker) EndSession(session string) {
	if session != "" {
		b.pool.shutdownAll(func(k poolKey) bool { return k.session == session })
	}
}

// NotifyRootsChanged notifies a session's instances that its client's roots have changed.
func (b *Broker) NotifyRootsChanged(ctx context.Context, session string) {
	for _, in := range b.pool.find(func(k poolKey) bool { return session != "" && k.session == session }) {
		if err := in.Notify(ctx, "notifications/roots/list_changed", nil); err != nil {
			b.o.Logger.Debug("could not notify an app that a client's roots changed", "error", err)
		}
	}
}

// Wait waits until the instances that were removed from the pool have stopped.
func (b *Broker) Wait() { b.pool.ending.Wait() }

// EndInstances shuts down the app's instances in the session pool, and waits until they have stopped.
func (d *Dialog) EndInstances() {
	d.broker.pool.shutdownAll(func(k poolKey) bool { return k.dialog == d })
}

// Instances returns the app's instances in the session pool that have started.
func (d *Dialog) Instances() []instance.Instance {
	return d.broker.pool.find(func(k poolKey) bool { return k.dialog == d })
}

// Sessions returns the sessions that have their own instance of the app; "" stands for stateless clients.
func (d *Dialog) Sessions() (found []string) {
	p := d.broker.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, x := range p.open {
		if key.dialog == d && key.account == "" && isClosed(x.ready) && x.err == nil {
			found = append(found, key.session)
		}
	}
	return found
}

// AwaitInstances returns the app's instances for exactly this session, and waits for those that are starting. For "",
// it includes the instances that serve single calls of stateless clients.
func (d *Dialog) AwaitInstances(ctx context.Context, session string) (found []instance.Instance) {
	for _, x := range d.pooledFor(session) {
		select {
		case <-x.ready:
		case <-ctx.Done():
			return found
		}
		if x.err == nil && !isClosed(x.instance.Done()) {
			found = append(found, x.instance)
		}
	}
	return found
}

func (d *Dialog) pooledFor(session string) (found []*pooled) {
	p := d.broker.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, x := range p.open {
		if key.dialog == d && key.account == "" && (key.session == session || session == "" && x.exclusive) {
			found = append(found, x)
		}
	}
	return found
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
