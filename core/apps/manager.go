package apps

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/go-hclog"
	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/files"
	"github.com/ropewalk/ropewalk/core/apps/instance"
	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/core/apps/offer"
	"github.com/ropewalk/ropewalk/core/apps/permit"
	"github.com/ropewalk/ropewalk/core/apps/source"
	"github.com/ropewalk/ropewalk/core/config"
)

// Manager manages all installed apps of all workspaces. It is safe for concurrent use. List, Health and Offer read
// immutable values and never wait for an install, a start or a stop.
type Manager struct {
	o         Options
	log       hclog.Logger
	catalog   *offer.Catalog
	ownOffers *lru.Cache[string, ownOffer]
	broker    *interact.Broker
	resolver  *source.Resolver
	starts    *startQueue
	files     *files.Store
	start     startFunc
	setup     atomic.Pointer[setup]
	policy    atomic.Pointer[source.Policy]

	listeners     *listeners
	logLevels     *logLevels
	subscriptions *subscriptions

	failedInstalls failedInstalls

	guard    *permit.Guard
	identity identity

	life context.Context //nolint:containedctx // cancelled when Close is called
	die  context.CancelFunc
	work sync.WaitGroup // commands and background work that Close waits for

	mu       sync.RWMutex
	closed   bool
	apps     map[string]map[string]*app        // by workspace and server name
	reserved map[interact.AppRef]chan struct{} // names of installs in progress; closed when the install has ended
	aside    map[interact.AppRef]string        // IDs of uninstalled apps that can be restored

	reconciler reconciler
	crowd      *crowd
}

// New returns a Manager without apps. Open loads them.
func New(o Options) *Manager {
	o.setDefaults()
	m := &Manager{
		o: o, log: o.Logger, starts: newStartQueue(o.StartsAtOnce, o.StartPatience),
		apps: map[string]map[string]*app{}, reserved: map[interact.AppRef]chan struct{}{}, aside: map[interact.AppRef]string{},
		listeners: &listeners{all: map[string]map[*listener]struct{}{}}, logLevels: &logLevels{byWorkspace: map[string]string{}}, subscriptions: newSubscriptions(),
		reconciler: reconciler{busy: map[interact.AppRef]*reconciliation{}},
	}
	m.crowd = &crowd{manager: m, due: make(chan struct{}, 1)}
	m.crowd.limit(o.MaxAwake)
	m.guard = m.newGuard()
	m.life, m.die = context.WithCancel(context.Background())
	m.catalog = offer.NewCatalog(m.collectOffer)
	m.ownOffers, _ = lru.New[string, ownOffer](maxOwnOffers) // the only error is a size below 1
	m.broker = interact.NewBroker(interact.Options{
		Settings: o.Records, Peers: o.Cluster, Logger: m.log, CallTimeout: o.CallTimeout, Grace: o.Grace,
		MaxInstances: o.MaxSessionInstances, InstanceIdle: o.SessionInstanceIdle, Life: m.life, Begin: m.beginWork,
		MaxCalls: o.MaxCalls, MaxAnswer: o.MaxAnswer,
	})
	m.resolver = &source.Resolver{
		Home: o.Home, HostEnv: o.HostEnv, Logger: o.Logger, Confinement: o.Confinement,
		Sandbox: func(workspace, name string) config.Sandbox {
			return m.sandboxOf(interact.AppRef{Workspace: workspace, Name: name})
		},
		Registries: func() []source.NamedRegistry { return m.setup.Load().registries },
		InstallScripts: func(workspace, name string) bool {
			return workspace == core.DefaultWorkspaceID && m.setup.Load().declared[name].InstallScripts
		},
	}
	starter := &instance.Starter{
		HostEnv: o.HostEnv, Remote: o.Remote, Version: o.Version,
		MaxCalls:    o.MaxCalls + 64, // higher than the limit on slots, so that slots run out first
		MaxAnswer:   o.MaxAnswer,
		Confinement: o.Confinement,
		Measure:     o.Metrics.ClientOperation,
	}
	m.start = m.verifying(starter.Start)
	m.files = files.New(files.Options{
		Home: o.Home, Records: o.Records, Cluster: o.Cluster, Resolver: m.resolver, Logger: m.log, Timeout: o.InstallTimeout, Begin: m.beginWork,
	})
	if o.Pins != nil {
		o.Pins.Watch(m.checkPinsAgain)
	}
	m.setup.Store(newSetup(o.Registries, o.Configured))
	m.SetInstallPolicy(o.Install)
	return m
}

// List returns the workspace's apps, sorted by name. It includes declared apps that could not be installed.
func (m *Manager) List(workspace string) []core.App {
	found := m.in(workspace)
	list := make([]core.App, len(found))
	for i, a := range found {
		list[i] = m.describe(a)
	}
	return m.withFailed(workspace, list)
}

// App returns one app. It returns core.CodeNotFound if the workspace has no app with this name.
func (m *Manager) App(workspace, name string) (core.App, error) {
	a, err := m.find(workspace, name)
	if err == nil {
		return m.describe(a), nil
	}
	if failed, ok := m.failedInstalls.find(interact.AppRef{Workspace: workspace, Name: name}); ok {
		return failed, nil
	}
	return core.App{}, err
}

// Health returns the health of the workspace's apps, sorted by name.
func (m *Manager) Health(workspace string) []core.AppHealth {
	found := m.in(workspace)
	list := make([]core.AppHealth, len(found))
	for i, a := range found {
		list[i] = a.now.Load().health()
	}
	return list
}

// All returns the result of List for every workspace that has apps.
func (m *Manager) All() map[string][]core.App {
	all := map[string][]core.App{}
	for _, a := range m.allApps() {
		all[a.key.Workspace] = nil
	}
	for _, workspace := range m.failedInstalls.workspaces() {
		all[workspace] = nil
	}
	for workspace := range all {
		all[workspace] = m.List(workspace)
	}
	return all
}

// States returns the number of apps in each state, across all workspaces.
func (m *Manager) States() map[core.State]int {
	counts := map[core.State]int{}
	for _, a := range m.allApps() {
		counts[a.now.Load().state]++
	}
	return counts
}

// Asleep returns the number of running apps that are asleep, across all workspaces.
func (m *Manager) Asleep() (n int) {
	for _, a := range m.allApps() {
		if a.now.Load().asleep {
			n++
		}
	}
	return n
}

// InFlight returns the number of calls in flight by app name, across all workspaces.
func (m *Manager) InFlight() map[string]int {
	calls := map[string]int{}
	for _, a := range m.allApps() {
		calls[a.key.Name] += a.dialog.Slots().Used()
	}
	return calls
}

// Offer returns what the workspace's apps offer to a client, as long as they are running, asleep or being restarted. A
// nil client stands for one that cannot answer questions. If an app has an instance for the client's session, the lists
// of that instance are used; otherwise, those of the shared instance. The result is immutable, and remains the same
// value until something changes.
func (m *Manager) Offer(workspace string, client *interact.Client) *core.Offer {
	if session, ok := client.Session(); ok {
		return m.catalog.OfferOf(workspace, session)
	}
	return m.catalog.Offer(workspace)
}

// Tools returns the tools that the shared instances offer.
func (m *Manager) Tools(workspace string) []core.Tool { return m.Offer(workspace, nil).Tools }

// Watch calls changed after each change to one of the lists that Offer returns, in the goroutine that made the change
// and without holding a lock. changed must not block. It may also be called for a list that has not changed.
func (m *Manager) Watch(workspace string, changed func(core.Kind)) (stop func()) {
	return m.catalog.Watch(workspace, changed)
}

// collectOffer collects what the workspace's apps offer, sorted by server name and then in each app's own order.
func (m *Manager) collectOffer(workspace string) *core.Offer {
	var all core.Offer
	for _, a := range m.in(workspace) {
		one := &a.now.Load().offer
		all.Tools = append(all.Tools, one.Tools...)
		all.Held = append(all.Held, one.Held...)
		all.Prompts = append(all.Prompts, one.Prompts...)
		all.Resources = append(all.Resources, one.Resources...)
		all.Templates = append(all.Templates, one.Templates...)
	}
	return &all
}

// Instructions returns the instructions of the workspace's running apps, sorted by server name. It leaves out apps
// without instructions.
func (m *Manager) Instructions(workspace string) []core.Instructions {
	var all []core.Instructions
	for _, a := range m.in(workspace) {
		v := a.now.Load()
		text := ""
		switch {
		case v.instance != nil:
			text = v.instance.Info().Instructions
		case v.asleep:
			text = v.instructions
		}
		if text != "" {
			all = append(all, core.Instructions{Server: a.key.Name, Text: text})
		}
	}
	return all
}

// SkillsExtension is the name of the MCP extension for servers that offer skills.
const SkillsExtension = "io.modelcontextprotocol/skills"

// Skilled returns the sorted names of the workspace's running apps that serve skills.
func (m *Manager) Skilled(workspace string) (servers []string) {
	for _, a := range m.in(workspace) {
		if v := a.now.Load(); v.instance != nil && servesSkills(v.instance) || v.asleep && v.servesSkills {
			servers = append(servers, a.key.Name)
		}
	}
	return servers
}

// Missing returns the workspace's apps that should be running but whose tools are not known, sorted by name.
func (m *Manager) Missing(workspace string) (missing []core.MissingApp) {
	for _, a := range m.in(workspace) {
		if v := a.now.Load(); v.isMissing() {
			missing = append(missing, core.MissingApp{Name: a.key.Name, Status: v.state})
		}
	}
	return missing
}

func servesSkills(in instance.Instance) bool {
	var capabilities struct {
		Extensions map[string]json.RawMessage `json:"extensions"`
	}
	raw := in.Info().Capabilities
	return bytes.Contains(raw, []byte(SkillsExtension)) && json.Unmarshal(raw, &capabilities) == nil && capabilities.Extensions[SkillsExtension] != nil
}

// in returns the workspace's apps, sorted by name.
func (m *Manager) in(workspace string) []*app {
	m.mu.RLock()
	list := make([]*app, 0, len(m.apps[workspace]))
	for _, a := range m.apps[workspace] {
		list = append(list, a)
	}
	m.mu.RUnlock()
	slices.SortFunc(list, func(a, b *app) int { return strings.Compare(a.key.Name, b.key.Name) })
	return list
}

func (m *Manager) find(workspace, name string) (*app, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if a := m.apps[workspace][name]; a != nil {
		return a, nil
	}
	return nil, notFound(name)
}

// beginWork registers a command or background work, so that Close waits for it. The returned context is cancelled when
// Close is called. After that, beginWork returns core.CodeUnavailable.
func (m *Manager) beginWork(ctx context.Context) (c context.Context, done func(), err error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.closed {
		return nil, nil, core.Errorf(core.CodeUnavailable, "the server is shutting down")
	}
	m.work.Add(1)
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(m.life, cancel)
	return ctx, func() {
		stop()
		cancel()
		m.work.Done()
	}, nil
}

// background runs work in a goroutine that Close waits for (beginWork). It returns false if Close has been called.
func (m *Manager) background(work func(ctx context.Context)) bool {
	ctx, done, err := m.beginWork(context.Background())
	if err != nil {
		return false
	}
	go func() {
		defer done()
		work(ctx)
	}()
	return true
}

// reserveName reserves a name for an install. It returns core.CodeAlreadyInstalled if an app or another install in
// progress has the name.
func (m *Manager) reserveName(k interact.AppRef) (free func(), err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.reserved[k] != nil || m.apps[k.Workspace][k.Name] != nil {
		return nil, core.AlreadyInstalled(k.Name)
	}
	over := make(chan struct{})
	m.reserved[k] = over
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.reserved, k)
		close(over)
	}, nil
}

// addApp makes an app visible.
func (m *Manager) addApp(a *app) {
	m.mu.Lock()
	if m.apps[a.key.Workspace] == nil {
		m.apps[a.key.Workspace] = map[string]*app{}
	}
	m.apps[a.key.Workspace][a.key.Name] = a
	delete(m.aside, a.key)
	m.mu.Unlock()
	m.failedInstalls.remove(a.key)
	m.catalog.Refresh(a.key.Workspace)
}

func (m *Manager) removeApp(a *app) {
	m.mu.Lock()
	delete(m.apps[a.key.Workspace], a.key.Name)
	if len(m.apps[a.key.Workspace]) == 0 {
		delete(m.apps, a.key.Workspace)
	}
	m.mu.Unlock()
	m.forgetPins(a.key, "")
	m.catalog.Refresh(a.key.Workspace)
}

// maxListBytes limits the lists of all apps of a workspace together. In memory, they take about twice as much.
const maxListBytes = 64 << 20

// acceptSize returns an error if the lists of an app and those of the workspace's other apps are too large together.
func (a *app) acceptSize(lists *core.Offer) error {
	_, size := offer.Size(lists)
	m, all := a.manager, size
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, other := range m.apps[a.key.Workspace] {
		if other.key != a.key {
			all += other.listBytes
		}
	}
	if all > maxListBytes {
		return fmt.Errorf("the lists of this app have %d bytes, and those of all apps of the workspace would have %d, of which the server keeps at most %d; leave out some of this app's tools, or uninstall an app with long lists",
			size, all, maxListBytes)
	}
	a.listBytes = size
	return nil
}

func (m *Manager) allApps() (all []*app) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for _, apps := range m.apps {
		all = slices.AppendSeq(all, maps.Values(apps))
	}
	return all
}

// Close rejects new commands, cancels those in progress, and stops all apps concurrently. It does not change the
// records, so a Manager that opens them later resumes the same apps. If ctx ends first, the error says so and the rest
// happens in the background. Processes never outlive the server.
func (m *Manager) Close(ctx context.Context) error {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.die()
	done := make(chan error, 1)
	go func() {
		err := m.shutdownAll(ctx)
		m.work.Wait() // an install that could no longer be cancelled has already added its app
		err = errors.Join(err, m.shutdownAll(ctx))
		m.broker.Wait()
		m.crowd.running.Wait()
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("not all apps have stopped: %w", context.Cause(ctx))
	}
}

func (m *Manager) shutdownAll(ctx context.Context) error {
	all := m.allApps()
	errs := make([]error, len(all))
	var stopping sync.WaitGroup
	for i, a := range all {
		stopping.Go(func() { errs[i] = a.shutdown(ctx) })
	}
	stopping.Wait()
	return errors.Join(errs...)
}

// shutdown stops an app without changing its record.
func (a *app) shutdown(ctx context.Context) error {
	a.cancelStart()
	select {
	case a.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer a.releaseTurn()
	if err := a.stopSupervisor(ctx); err != nil {
		return fmt.Errorf("stop app %s in workspace %s: %w", a.key.Name, a.key.Workspace, err)
	}
	return nil
}

func notFound(name string) error {
	return core.Errorf(core.CodeNotFound, "no app named %.100q is installed", name)
}
