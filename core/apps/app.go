package apps

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
)

// key names an app: short names are unique in a workspace only.
type key struct{ workspace, name string }

// app is one installed app. At any moment at most one command (start, stop, uninstall, update)
// holds its turn, and at most one run supervises it; between them they are the only writers.
type app struct {
	key     key
	manager *Manager
	log     hclog.Logger

	turn  chan struct{} // holds one token while a command is at work
	calls chan struct{} // holds one token for each call in flight

	now atomic.Pointer[view]

	unannounced bool // declared by the configuration and yet to run; the supervisor's own

	mu        sync.Mutex
	run       *run               // nil when nobody supervises
	interrupt context.CancelFunc // gives up a start that a command waits for; nil when none does
}

// run is one stretch of supervision, from a start to a stop or to death.
type run struct {
	ctx    context.Context // ends with the manager, not with the command that began the run
	cancel context.CancelFunc
	done   chan struct{} // closed when the supervisor has returned
	err    error         // why the process tree could not be ended; read after done
}

func (y *Manager) newApp(record core.Installation) *app {
	a := &app{
		key: key{record.Workspace, record.Name}, manager: y,
		log:   y.log.With("workspace", record.Workspace, "app", record.Name),
		turn:  make(chan struct{}, 1),
		calls: make(chan struct{}, y.o.MaxCalls),
	}
	a.now.Store(newView(record))
	return a
}

// same stands for the state that an app is in, when only details of it change.
const same core.State = ""

// become is the one way an app changes. The change is refused, and logged as the defect it is,
// when spec part 3 has no such transition. The namespace shows a change of tools before anyone
// who waits for the new state goes on.
func (a *app) become(next core.State, change func(*view)) bool {
	a.mu.Lock()
	old := a.now.Load()
	if next == same {
		next = old.state
	} else if next != old.state && !old.state.Can(next) {
		a.mu.Unlock()
		a.log.Error("An app was kept from an illegal change of state", "from", old.state, "to", next)
		return false
	}
	v := *old
	v.state, v.replaced = next, make(chan struct{})
	if next != core.StateRunning {
		v.conn = nil
	}
	if next == core.StateStopped || next == core.StateDead {
		v.offer = core.Offer{}
	}
	if change != nil {
		change(&v)
	}
	shown := func() {}
	if len(differing(&old.offer, &v.offer)) > 0 {
		shown = a.manager.catalog.change(a.key.workspace)
	}
	a.now.Store(&v)
	a.mu.Unlock()
	if next != old.state {
		a.log.Info("An app changed its state", "from", old.state, "to", next)
	}
	shown()
	close(old.replaced)
	return true
}

// take waits for the app's turn. The error is ctx's, or core.CodeNotFound when the app was
// removed while waiting.
func (a *app) take(ctx context.Context) error {
	select {
	case a.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if found, err := a.manager.find(a.key.workspace, a.key.name); err != nil || found != a {
		a.give()
		return notFound(a.key.name)
	}
	return nil
}

func (a *app) give() { <-a.turn }

// interruptible lets giveUp end what the holder of the turn waits for, until done is called.
func (a *app) interruptible(ctx context.Context) (c context.Context, done func()) {
	ctx, cancel := context.WithCancel(ctx)
	a.mu.Lock()
	a.interrupt = cancel
	a.mu.Unlock()
	return ctx, func() {
		a.mu.Lock()
		a.interrupt = nil
		a.mu.Unlock()
		cancel()
	}
}

// giveUp ends a start that is being waited for, so that a stop need not wait for it.
func (a *app) giveUp() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.interrupt != nil {
		a.interrupt()
	}
}

// begin hands the app to a new supervisor; conn is nil when that has to start the app first.
// The caller holds the turn, and no run is on. The run lasts until it is ended or the manager closes.
func (a *app) begin(conn instance) {
	r := &run{done: make(chan struct{})}
	r.ctx, r.cancel = context.WithCancel(a.manager.life)
	a.mu.Lock()
	a.run = r
	a.mu.Unlock()
	go func() {
		defer close(r.done)
		defer r.cancel()
		r.err = a.supervise(r.ctx, conn)
	}()
}

// end ends the run, if one is on, and with it the app's processes; the app is stopped then. The
// caller holds the turn. When ctx ends first, the run goes on ending by itself.
func (a *app) end(ctx context.Context) error {
	a.mu.Lock()
	r := a.run
	a.mu.Unlock()
	if r != nil {
		r.cancel()
		select {
		case <-r.done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if a.now.Load().state != core.StateStopped {
		a.become(core.StateStopped, nil)
	}
	if r == nil {
		return nil
	}
	a.mu.Lock()
	a.run = nil
	a.mu.Unlock()
	return r.err
}
