package apps

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/link"
	"github.com/ropewalk/ropewalk/core/rpc"
)

// annexes are the instances that running apps have beside their shared one: one for each session
// whose client an app asks, and one for the callers of the other era of MCP (a connection that
// served both would not serve either well). They are opened when a call needs them, bounded in
// number, and ended with their session, with their app, or when nobody used them for a while.
type annexes struct {
	manager *Manager
	max     int
	idle    time.Duration

	mu     sync.Mutex
	open   map[annexKey]*annex
	ending sync.WaitGroup
}

// annexPause is how long an annex that could not be started is not tried again.
const annexPause = time.Minute

// errAnnex means that an app could not be started once more: some cannot run twice.
var errAnnex = errors.New("the app could not be started once more")

// annexKey says whom an annex serves: one session, or, when that is "", all stateless callers.
type annexKey struct {
	app     *app
	session string
}

type annex struct {
	key    annexKey
	cancel context.CancelFunc // gives its start up
	ready  chan struct{}      // closed when conn or err is set
	conn   instance
	err    error
	failed time.Time              // when it turned out that it cannot be started
	last   atomic.Pointer[caller] // whose client is asked what belongs to no call

	users int         // calls in flight; the pool's mutex
	since time.Time   // when the last one ended
	timer *time.Timer // ends it when nobody comes; nil while in use
}

func newAnnexes(y *Manager, most int, idle time.Duration) *annexes {
	return &annexes{manager: y, max: most, idle: idle, open: map[annexKey]*annex{}}
}

// enter gives a call the annex for key, and opens it if there is none; leave is called when the
// call is over. With alone, it is one of several that key begins, and the call has it to itself. The
// error is ctx's, core.CodeUnavailable when there are too many, or errAnnex.
func (p *annexes) enter(ctx context.Context, key annexKey, alone bool, k *caller) (x *annex, leave func(), err error) {
	if x, err = p.find(key, alone, k); err != nil {
		return nil, nil, err
	}
	leave = func() { p.leave(x) }
	select {
	case <-x.ready:
		err = x.err
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		leave()
		return nil, nil, err
	}
	return x, leave, nil
}

// find is the annex for key, with one more user.
func (p *annexes) find(key annexKey, alone bool, k *caller) (*annex, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for begun, i := key.session, 1; alone && p.open[key] != nil && p.open[key].users > 0; i++ {
		key.session = fmt.Sprintf("%s %d", begun, i)
	}
	x := p.open[key]
	if x != nil && x.over() {
		p.drop(x)
		x = nil
	}
	if x == nil {
		if key.app.now.Load().state != core.StateRunning {
			return nil, unavailable(time.Second, "app %s is not running", key.app.key.name)
		}
		if len(p.open) >= p.max && !p.evict() {
			return nil, unavailable(5*time.Second, "app %s needs an instance for this session, and the %d there may be are all in use", key.app.key.name, p.max)
		}
		x = p.begin(key, k)
	}
	x.last.Store(k)
	x.users++
	if x.timer != nil {
		x.timer.Stop()
		x.timer = nil
	}
	return x, nil
}

// over reports whether the annex ended, or failed so long ago that it may be tried again.
func (x *annex) over() bool {
	switch {
	case !closed(x.ready):
		return false
	case x.err != nil:
		return time.Since(x.failed) > annexPause
	}
	return closed(x.conn.Done())
}

// begin starts an annex. The caller holds the lock.
func (p *annexes) begin(key annexKey, k *caller) *annex {
	x := &annex{key: key, ready: make(chan struct{})}
	x.last.Store(k)
	p.open[key] = x
	ctx, cancel := context.WithTimeout(p.manager.life, p.manager.o.StartTimeout)
	x.cancel = cancel
	p.ending.Go(func() {
		defer cancel()
		defer close(x.ready)
		if x.conn, x.err = key.app.launchAnnex(ctx, x); x.err != nil {
			x.failed = time.Now()
		}
	})
	return x
}

// evict ends the annex that has been idle for longest, and reports whether there was one.
func (p *annexes) evict() bool {
	var oldest *annex
	for _, x := range p.open {
		if x.users == 0 && (oldest == nil || x.since.Before(oldest.since)) {
			oldest = x
		}
	}
	if oldest != nil {
		p.drop(oldest)
	}
	return oldest != nil
}

func (p *annexes) leave(x *annex) {
	p.mu.Lock()
	defer p.mu.Unlock()
	x.users--
	if x.users > 0 || p.open[x.key] != x {
		return
	}
	x.since = time.Now()
	x.timer = time.AfterFunc(p.idle, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.open[x.key] == x && x.users == 0 && time.Since(x.since) >= p.idle {
			p.drop(x)
		}
	})
}

// discard takes an annex out that is of no use.
func (p *annexes) discard(x *annex) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open[x.key] == x {
		p.drop(x)
	}
}

// drop takes an annex out and ends it in the background. The caller holds the lock.
func (p *annexes) drop(x *annex) {
	delete(p.open, x.key)
	if x.timer != nil {
		x.timer.Stop()
	}
	x.cancel()
	p.ending.Go(func() { p.end(x) })
}

func (p *annexes) end(x *annex) {
	<-x.ready
	if x.conn == nil {
		return
	}
	if err := x.conn.End(p.manager.o.Grace); err != nil {
		x.key.app.log.Error("An app's instance for one session could not be ended", "error", err)
	}
}

// endAll ends the annexes that match, and waits for that.
func (p *annexes) endAll(match func(annexKey) bool) {
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
		ending.Go(func() { p.end(x) })
	}
	p.mu.Unlock()
	ending.Wait()
}

// of is the open annex for key, nil when there is none that serves.
func (p *annexes) of(match func(annexKey) bool) (found []instance) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, x := range p.open {
		if match(key) && closed(x.ready) && x.err == nil {
			found = append(found, x.conn)
		}
	}
	return found
}

// await is the instance for exactly this key, waiting while it is being started; nil when there is
// none.
func (p *annexes) await(ctx context.Context, key annexKey) instance {
	p.mu.Lock()
	x := p.open[key]
	p.mu.Unlock()
	if x == nil {
		return nil
	}
	select {
	case <-x.ready:
	case <-ctx.Done():
		return nil
	}
	if x.err != nil || closed(x.conn.Done()) {
		return nil
	}
	return x.conn
}

// sessions are those for whom an app has an instance apart.
func (p *annexes) sessions(a *app) (found []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, x := range p.open {
		if key.app == a && closed(x.ready) && x.err == nil {
			found = append(found, key.session)
		}
	}
	return found
}

// EndSession ends what apps keep for one session (Client.Session).
func (y *Manager) EndSession(session string) {
	if session != "" {
		y.annexes.endAll(func(k annexKey) bool { return k.session == session })
	}
}

// RootsChanged tells the instances that apps have for a session that its client's roots changed.
func (y *Manager) RootsChanged(ctx context.Context, session string) {
	for _, conn := range y.annexes.of(func(k annexKey) bool { return session != "" && k.session == session }) {
		if err := conn.Notify(ctx, "notifications/roots/list_changed", nil); err != nil {
			y.log.Debug("An app was not told that a client's roots changed", "error", err)
		}
	}
}

// launchAnnex starts the app once more for those whom x serves.
func (a *app) launchAnnex(ctx context.Context, x *annex) (instance, error) {
	release, err := a.manager.starts.acquire(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errAnnex, err)
	}
	defer release()
	s := birth{record: a.now.Load().record, log: a.log, news: newNews()}
	if x.key.session == "" {
		s.stateless = true
		s.changed = func(kind core.Kind) { a.changedApart(kind) }
		s.said = func(n rpc.Notification) {
			if n.Method == "notifications/resources/updated" { // all else that is about no request is of the older revisions
				a.manager.listeners.tell(a.key.workspace, Notification{Server: a.key.name, Apart: true, Notification: n})
			}
		}
	} else {
		client := x.last.Load().client
		s.capabilities = client.capabilities
		s.asked = func(ctx context.Context, q link.Question) (json.RawMessage, error) { return x.asked(ctx, q) }
		s.said = func(n rpc.Notification) {
			a.manager.listeners.tell(a.key.workspace, Notification{Server: a.key.name, Session: x.key.session, Apart: true, Notification: n})
		}
		s.changed = func(kind core.Kind) {
			s.said(rpc.Notification{Method: "notifications/" + string(kind) + "/list_changed"})
		}
	}
	conn, err := a.manager.launch(ctx, s)
	if err != nil {
		a.log.Warn("An app could not be started once more", "stateless", s.stateless, "reason", message(err))
		return nil, fmt.Errorf("%w: %w", errAnnex, err)
	}
	a.manager.levels.apply(ctx, a, conn)
	a.want(ctx, conn, a.manager.interests.ofSet(set{a.key, x.key.session}))
	return conn, nil
}

// changedApart passes on that a list of an instance beside the shared one changed. The shared one's
// are read again: some bundles announce to one connection what concerns all.
func (a *app) changedApart(kind core.Kind) {
	for _, list := range listsOf(kind) {
		a.manager.catalog.announce(a.key.workspace, list)
	}
	if conn, ok := a.conn().(interface{ tell(core.Kind) }); ok {
		conn.tell(kind)
	}
}

// asked answers what the instance of one session asks: everything goes to that session's client, if
// it may be about a call then with the newest of them.
func (x *annex) asked(ctx context.Context, q link.Question) (json.RawMessage, error) {
	k, about := x.last.Load(), callersOf(q)
	if n := len(about); n > 0 {
		k = about[n-1]
	}
	return x.key.app.answer(ctx, q, k, about)
}
