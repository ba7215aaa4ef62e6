package interact

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// pool is the session pool: the instances that running apps have beside their shared one. An app has
// one for each session whose client it asks, and one for the clients of the other kind of MCP
// revision, since a connection cannot serve both well. They are started when a call needs them, their
// number is bounded, and they end with their session, with their app, or after a time without use.
type pool struct {
	o Options

	mu     sync.Mutex
	open   map[poolKey]*pooled
	ending sync.WaitGroup
}

// restartPause is how long an instance that could not be started is not tried again.
const restartPause = time.Minute

// errCannotStart means that an app could not be started once more: some cannot run twice.
var errCannotStart = errors.New("the app could not be started once more")

// poolKey says which clients an instance serves: one session, or all stateless clients for "".
type poolKey struct {
	dialog  *Dialog
	session string
}

func newPool(o Options) *pool { return &pool{o: o, open: map[poolKey]*pooled{}} }

// acquire returns the instance for key, and starts it if there is none; release is called when the
// call is over. With exclusive the call gets an instance to itself, one of several with this key. The
// error is ctx's, core.CodeUnavailable when there are too many instances, or errCannotStart.
func (p *pool) acquire(ctx context.Context, key poolKey, exclusive bool, f *InFlight) (x *pooled, release func(), err error) {
	if x, err = p.reserve(key, exclusive, f); err != nil {
		return nil, nil, err
	}
	release = func() { p.release(x) }
	select {
	case <-x.ready:
		err = x.err
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		release()
		return nil, nil, err
	}
	return x, release, nil
}

// reserve returns the instance for key, with one more user. It may still be starting.
func (p *pool) reserve(key poolKey, exclusive bool, f *InFlight) (*pooled, error) {
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
	if x == nil {
		name := key.dialog.app.Key().Name
		if !key.dialog.app.IsRunning() {
			return nil, unavailable(time.Second, "app %s is not running", name)
		}
		if len(p.open) >= p.o.MaxInstances && !p.evictIdle() {
			return nil, unavailable(5*time.Second, "app %s needs an instance for this session, but all %d instances of the session pool are in use", name, p.o.MaxInstances)
		}
		x = p.start(key, exclusive, f)
	}
	x.newest.Store(f)
	x.users++
	if x.timer != nil {
		x.timer.Stop()
		x.timer = nil
	}
	return x, nil
}

// start starts an instance in the background. The caller holds the mutex.
func (p *pool) start(key poolKey, exclusive bool, f *InFlight) *pooled {
	x := &pooled{key: key, exclusive: exclusive, ready: make(chan struct{})}
	x.newest.Store(f)
	p.open[key] = x
	ctx, cancel := context.WithTimeout(p.o.Life, p.o.StartTimeout)
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

// evictIdle removes the instance that has been unused for longest, and reports whether there was one.
func (p *pool) evictIdle() bool {
	var oldest *pooled
	for _, x := range p.open {
		if x.users == 0 && (oldest == nil || x.unusedSince.Before(oldest.unusedSince)) {
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

// discard removes an instance that is of no use.
func (p *pool) discard(x *pooled) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open[x.key] == x {
		p.remove(x)
	}
}

// remove takes an instance out of the pool and ends it in the background. The caller holds the mutex.
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
		x.key.dialog.log.Error("instance of a session could not be ended", "error", err)
	}
}

// shutdownAll ends the instances that match, and waits for that.
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
func (p *pool) find(match func(poolKey) bool) (found []Instance) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, x := range p.open {
		if match(key) && isClosed(x.ready) && x.err == nil {
			found = append(found, x.instance)
		}
	}
	return found
}

// EndSession ends what apps keep for one session.
func (b *Broker) EndSession(session string) {
	if session != "" {
		b.pool.shutdownAll(func(k poolKey) bool { return k.session == session })
	}
}

// NotifyRootsChanged tells the instances that apps have for a session that its client's roots changed.
func (b *Broker) NotifyRootsChanged(ctx context.Context, session string) {
	for _, in := range b.pool.find(func(k poolKey) bool { return session != "" && k.session == session }) {
		if err := in.Notify(ctx, "notifications/roots/list_changed", nil); err != nil {
			b.o.Logger.Debug("an app was not notified that a client's roots changed", "error", err)
		}
	}
}

// Wait waits until the instances that were removed from the pool have ended.
func (b *Broker) Wait() { b.pool.ending.Wait() }

// EndInstances ends the app's instances of the session pool, and waits for that.
func (d *Dialog) EndInstances() {
	d.broker.pool.shutdownAll(func(k poolKey) bool { return k.dialog == d })
}

// Instances returns the app's instances of the session pool.
func (d *Dialog) Instances() []Instance {
	return d.broker.pool.find(func(k poolKey) bool { return k.dialog == d })
}

// Sessions returns the sessions for which the app has an instance of its own, "" for stateless clients.
func (d *Dialog) Sessions() (found []string) {
	p := d.broker.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, x := range p.open {
		if key.dialog == d && isClosed(x.ready) && x.err == nil {
			found = append(found, key.session)
		}
	}
	return found
}

// AwaitInstances returns the app's instances for exactly this session, waiting while they are being
// started. For "", those that serve single calls of stateless clients are among them.
func (d *Dialog) AwaitInstances(ctx context.Context, session string) (found []Instance) {
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
		if key.dialog == d && (key.session == session || session == "" && x.exclusive) {
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
