package apps

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
)

// Manager is all installed apps of all workspaces. It is safe for concurrent use. What it shows
// (List, Health, Tools) is read from snapshots and never waits for an install, a start or a stop.
type Manager struct {
	o       Options
	log     hclog.Logger
	catalog *catalog
	starts  *starts
	launch  launcher
	setup   atomic.Pointer[setup]

	memory    *memory
	annexes   *annexes
	errands   *errands
	listeners *listeners
	levels    *levels
	interests *interests
	parking   *parking

	life context.Context // ends when Close begins
	die  context.CancelFunc
	work sync.WaitGroup // commands and start-up work, which Close waits for

	mu     sync.RWMutex
	closed bool
	apps   map[string]map[string]*app // by workspace and short name
	taken  map[key]chan struct{}      // names that an install in progress has reserved; closed at its end

	following followers
}

// New returns a manager without apps; Open brings them in.
func New(o Options) *Manager {
	o.setDefaults()
	y := &Manager{
		o: o, log: o.Logger, starts: newStarts(o.StartsAtOnce, o.StartPatience),
		apps: map[string]map[string]*app{}, taken: map[key]chan struct{}{},
	}
	y.memory, y.errands, y.listeners, y.levels, y.interests = newMemory(), newErrands(), newListeners(), newLevels(), newInterests()
	server := ""
	if o.Cluster != nil {
		server = o.Cluster.ServerID()
	}
	y.parking = newParking(stateOn(server))
	y.following = followers{busy: map[key]*pursuit{}}
	y.annexes = newAnnexes(y, o.MaxSessionInstances, o.SessionInstanceIdle)
	y.life, y.die = context.WithCancel(context.Background())
	y.catalog = newCatalog(y.collectOffer)
	y.launch = y.launchApp
	y.setup.Store(&setup{registries: o.Registries, declared: o.Configured})
	return y
}

// List is the workspace's apps by name.
func (y *Manager) List(workspace string) []core.App {
	found := y.in(workspace)
	list := make([]core.App, len(found))
	for i, a := range found {
		list[i] = a.now.Load().app()
	}
	return list
}

// App is one app: core.CodeNotFound when the workspace has no such one.
func (y *Manager) App(workspace, name string) (core.App, error) {
	a, err := y.find(workspace, name)
	if err != nil {
		return core.App{}, err
	}
	return a.now.Load().app(), nil
}

// Health is how the workspace's apps are, by name.
func (y *Manager) Health(workspace string) []core.AppHealth {
	found := y.in(workspace)
	list := make([]core.AppHealth, len(found))
	for i, a := range found {
		list[i] = a.now.Load().health()
	}
	return list
}

// Offer is what the workspace's apps that run or are being restarted offer. It is immutable, and
// the same one until something changed.
func (y *Manager) Offer(workspace string) *core.Offer { return y.catalog.offer(workspace) }

// Tools is the tools of Offer.
func (y *Manager) Tools(workspace string) []core.Tool { return y.Offer(workspace).Tools }

// Watch calls changed after each change of a list of what Offer returns, from whichever goroutine
// made the change and without a lock held. changed must not wait. It may also be called for a list
// that did not change.
func (y *Manager) Watch(workspace string, changed func(core.Kind)) (stop func()) {
	return y.catalog.watch(workspace, changed)
}

func (y *Manager) find(workspace, name string) (*app, error) {
	y.mu.RLock()
	defer y.mu.RUnlock()
	if a := y.apps[workspace][name]; a != nil {
		return a, nil
	}
	return nil, notFound(name)
}

// enter counts a command in, so that Close waits for it, and gives it a context that ends when
// Close begins. It is refused with core.CodeUnavailable once the manager closes.
func (y *Manager) enter(ctx context.Context) (c context.Context, leave func(), err error) {
	y.mu.RLock()
	defer y.mu.RUnlock()
	if y.closed {
		return nil, nil, core.Errorf(core.CodeUnavailable, "the server is shutting down")
	}
	y.work.Add(1)
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(y.life, cancel)
	return ctx, func() {
		stop()
		cancel()
		y.work.Done()
	}, nil
}

// reserve takes a name for an install: core.CodeAlreadyInstalled when an app has it, or another
// install in progress.
func (y *Manager) reserve(k key) (free func(), err error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.taken[k] != nil || y.apps[k.workspace][k.name] != nil {
		return nil, core.Errorf(core.CodeAlreadyInstalled, "an app named %s is installed already", k.name)
	}
	over := make(chan struct{})
	y.taken[k] = over
	return func() {
		y.mu.Lock()
		defer y.mu.Unlock()
		delete(y.taken, k)
		close(over)
	}, nil
}

// show shows an app to everyone.
func (y *Manager) show(a *app) {
	y.mu.Lock()
	if y.apps[a.key.workspace] == nil {
		y.apps[a.key.workspace] = map[string]*app{}
	}
	y.apps[a.key.workspace][a.key.name] = a
	y.mu.Unlock()
	y.catalog.refresh(a.key.workspace)
}

// remove is the opposite of show.
func (y *Manager) remove(a *app) {
	y.mu.Lock()
	delete(y.apps[a.key.workspace], a.key.name)
	if len(y.apps[a.key.workspace]) == 0 {
		delete(y.apps, a.key.workspace)
	}
	y.mu.Unlock()
	y.catalog.refresh(a.key.workspace)
}

// Close refuses new commands, gives up those at work, and ends all apps, at the same time; they
// are as before when a manager is opened on the same records. When ctx ends first the error says so,
// and what is left goes on ending; the processes' own life line ends it with the server at the latest.
func (y *Manager) Close(ctx context.Context) error {
	y.mu.Lock()
	y.closed = true
	y.mu.Unlock()
	y.die()
	done := make(chan error, 1)
	go func() {
		err := y.shutAll(ctx)
		y.work.Wait() // an install that had gone too far to be given up has added its app by then
		err = errors.Join(err, y.shutAll(ctx))
		y.annexes.ending.Wait()
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("not every app has ended: %w", context.Cause(ctx))
	}
}

func (y *Manager) shutAll(ctx context.Context) error {
	y.mu.RLock()
	var all []*app
	for _, apps := range y.apps {
		all = slices.AppendSeq(all, maps.Values(apps))
	}
	y.mu.RUnlock()
	errs := make([]error, len(all))
	var ending sync.WaitGroup
	for i, a := range all {
		ending.Go(func() { errs[i] = a.shut(ctx) })
	}
	ending.Wait()
	return errors.Join(errs...)
}

// shut ends an app without changing what is recorded of it.
func (a *app) shut(ctx context.Context) error {
	a.giveUp()
	select {
	case a.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer a.give()
	if err := a.end(ctx); err != nil {
		return fmt.Errorf("end app %s of %s: %w", a.key.name, a.key.workspace, err)
	}
	return nil
}

func notFound(name string) error {
	return core.Errorf(core.CodeNotFound, "there is no app named %.100q", name)
}
