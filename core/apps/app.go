package apps

import (
	"context"
	"crypto/sha256"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/instance"
	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/core/apps/offer"
)

// app is one installed app. Its turn is a lock: at any time, at most one command (start, stop, uninstall, update) holds
// it, and at most one supervisor runs. Only these two change the app.
type app struct {
	key     interact.AppRef
	manager *Manager
	log     hclog.Logger
	dialog  *interact.Dialog

	turn  chan struct{}    // holds one token while a command is running
	retry chan struct{}    // capacity 1; signalled when a crashed remote app is called
	wake  chan struct{}    // capacity 1; signalled when a sleeping app is needed
	rest  chan chan<- bool // receives to put the app to sleep now; the reply reports whether it may sleep
	used  atomic.Int64     // when it last started running or took a slot for a call, in Unix nanoseconds

	now atomic.Pointer[view]

	pins      pinning
	listings  listings
	listBytes int // the size of pins.listed; guarded by Manager.mu

	recorded atomic.Pointer[recorder] // the lists last read from the shared instance; nil if it has never run
	stored   [sha256.Size]byte        // hash of the stored lists; only used by code that changes the app

	requested atomic.Pointer[cachedRequests] // nil until first requested
	denials   denials
	traced    atomic.Bool // whether its instances report the files that they open

	unannounced bool // bundle.installed has not been published yet; used only by the supervisor

	mu          sync.Mutex
	supervision *supervision       // nil if no supervisor is running
	interrupt   context.CancelFunc // cancels a start that a command waits for; nil if there is none
}

// supervision lasts from a start until a stop or until the app is dead.
type supervision struct {
	ctx    context.Context //nolint:containedctx // ends with the manager, not with the command that started it
	cancel context.CancelFunc
	done   chan struct{} // closed when the supervisor has returned
	err    error         // why the process tree could not be stopped; valid after done is closed
}

func (m *Manager) newApp(record core.Installation) *app {
	a := &app{
		key: interact.AppRef{Workspace: record.Workspace, Name: record.Name}, manager: m,
		log:   m.log.With("workspace", record.Workspace, "app", record.Name),
		turn:  make(chan struct{}, 1),
		retry: make(chan struct{}, 1),
		wake:  make(chan struct{}, 1),
		rest:  make(chan chan<- bool),
	}
	a.dialog = m.broker.NewDialog(a.key, a, a.log)
	a.dialog.SetBundle(bundleOf(record))
	a.now.Store(newView(record))
	return a
}

// sameState keeps the current state when only other parts of the view change.
const sameState core.State = ""

// transition changes the app. Nothing else may change it. A transition that core.State does not allow is rejected and
// logged as a bug. By the time anything waiting for the new state resumes, the catalog contains the changed lists.
func (a *app) transition(next core.State, change func(*view)) bool {
	a.mu.Lock()
	old := a.now.Load()
	if next == sameState {
		next = old.state
	} else if next != old.state && !old.state.Can(next) {
		a.mu.Unlock()
		a.log.Error("rejected an illegal app state transition", "from", old.state, "to", next)
		return false
	}
	v := *old
	v.state, v.replaced = next, make(chan struct{})
	v.awaited = v.awaited && (next == core.StateStopped || next == old.state)
	if next != core.StateRunning {
		v.instance, v.asleep = nil, false
	}
	if next == core.StateRunning || next == core.StateStopped {
		v.failure = nil
	}
	if change != nil {
		change(&v)
	}
	if !v.shows() {
		v.offer = core.Offer{}
	}
	finish := func() {}
	if len(offer.Differences(&old.offer, &v.offer)) > 0 {
		finish = a.manager.catalog.BeginChange(a.key.Workspace)
	}
	a.now.Store(&v)
	a.dialog.SetBundle(bundleOf(v.record))
	a.mu.Unlock()
	if next != old.state {
		a.log.Info("app state changed", "from", old.state, "to", next)
	}
	finish()
	close(old.replaced)
	return true
}

// acquireTurn waits for the app's turn. The error is ctx's, or core.CodeNotFound if the app was removed in the
// meantime.
func (a *app) acquireTurn(ctx context.Context) error {
	select {
	case a.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if found, err := a.manager.find(a.key.Workspace, a.key.Name); err != nil || found != a {
		a.releaseTurn()
		return notFound(a.key.Name)
	}
	return nil
}

func (a *app) releaseTurn() { <-a.turn }

func bundleOf(record core.Installation) interact.Bundle {
	return interact.Bundle{Name: record.PublicName(), Version: record.Version}
}

// interruptible lets cancelStart cancel what the holder of the turn is waiting for, until done is called.
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

// cancelStart cancels a start that a command is waiting for, so that a stop does not have to wait for it.
func (a *app) cancelStart() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.interrupt != nil {
		a.interrupt()
	}
}

// startSupervisor starts a supervisor for the app. in is nil if the supervisor has to start the app first. The caller
// must hold the turn, and no supervisor may be running.
func (a *app) startSupervisor(in instance.Instance) {
	r := &supervision{done: make(chan struct{})}
	r.ctx, r.cancel = context.WithCancel(a.manager.life)
	a.mu.Lock()
	a.supervision = r
	a.mu.Unlock()
	go func() {
		defer close(r.done)
		defer r.cancel()
		r.err = a.supervise(r.ctx, in)
	}()
}

// stopSupervisor ends the supervisor, if one is running, and with it the app's processes. Afterwards the app is
// stopped. The caller must hold the turn. If ctx ends first, the rest happens in the background.
func (a *app) stopSupervisor(ctx context.Context) error {
	a.mu.Lock()
	r := a.supervision
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
		a.transition(core.StateStopped, nil)
	}
	if r == nil {
		return nil
	}
	a.mu.Lock()
	a.supervision = nil
	a.mu.Unlock()
	return r.err
}
