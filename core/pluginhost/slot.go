package pluginhost

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/host"
	"github.com/ropewalk/ropewalk/plugins/server"
)

// slot holds one adapter: its running generation, or none while it is being replaced. T is the contract
// interface. A handle is a slot plus the methods of its kind.
type slot[T any] struct {
	host    *Host
	target  target
	log     hclog.Logger
	kind    kind[T]
	secrets secrets // redacted from errors

	mu        sync.Mutex
	gen       *generation[T] // nil while there is none
	changed   chan struct{}  // closed when gen or closing changes
	closing   bool
	restarts  int
	lastErr   error
	calls     uint64 // total number
	failures  uint64
	recent    recentCalls
	nextPause time.Duration // before replacing a generation that never answered a call

	halt      chan struct{} // closed to interrupt the supervision: permanently, or for a suspension
	suspended *suspension   // non-nil while another plugin owns the backend
	successor *slot[T]      // answers this slot's calls; nil unless the slot is suspended

	attached *generation[T] // answers the calls while it is set; see attach.go

	replaced []*slot[T] // slots that were suspended for this one

	ended chan struct{} // closed when nothing in the slot is running
	stop  chan struct{} // closed to end the supervision
}

// generation is one process of a slot, or the implementation itself if it runs in process.
type generation[T any] struct {
	slot     *slot[T]
	client   T
	inst     *instance   // nil in process, and when attached
	attached *attachment // nil unless someone else started the process
	since    time.Time
	version  string // in-process only

	// Guarded by the slot's mu.
	inFlight int       // pending calls
	answered time.Time // when it last answered a call, possibly with an error defined in the contract; zero if never
}

func (g *generation[T]) gone() <-chan struct{} {
	switch {
	case g.attached != nil:
		return g.attached.ended
	case g.inst != nil:
		return g.inst.done()
	}
	return nil
}

// load starts a plugin, sends it its settings and supervises it from then on. If the new slot is closed before the
// slots in old are, the old slots resume.
func load[T any](ctx context.Context, h *Host, t target, k kind[T], old []*slot[T]) (*slot[T], error) {
	s := &slot[T]{
		host: h, target: t, kind: k, log: h.log.Named(string(t.kind) + "." + t.name),
		secrets: secretsOf(t.config.Settings.JSON()), changed: make(chan struct{}), ended: make(chan struct{}), stop: make(chan struct{}), halt: make(chan struct{}),
	}
	var err error
	if s.gen, err = s.generate(ctx, func(ctx context.Context, info plugins.Info) { s.suspendOld(ctx, info, old) }); err != nil {
		s.resumeOld(ctx)
		return nil, err
	}
	if err := s.pin(); err != nil {
		s.gen.inst.kill()
		s.resumeOld(ctx)
		return nil, err
	}
	h.opened(s)
	h.removeUnused(t)
	go s.supervise()
	s.takeOverCalls()
	return s, nil
}

// pin records the sha256 of a plugin at its first use.
func (s *slot[T]) pin() error {
	t := s.target
	if !t.pinned {
		return nil
	}
	first, err := s.host.lockFile().record(t.path, t.sha256)
	if err != nil {
		return t.failed(fmt.Sprintf("cannot record its sha256: %v", err), "")
	}
	if first {
		s.log.Info("plugin accepted at first use; accept a changed file with `ropewalk plugin verify --accept`", "path", t.path, "sha256", t.sha256)
	}
	return nil
}

// generate creates a new generation completely or not at all. prepare is called between its start and
// Configure.
func (s *slot[T]) generate(ctx context.Context, prepare func(context.Context, plugins.Info)) (*generation[T], error) {
	if s.target.impl != nil {
		return s.inProcess(ctx)
	}
	inst, err := s.host.launch(ctx, s.host.kept(s.target))
	if err != nil {
		return nil, err
	}
	client, err := s.newClient(inst.conn, inst.protocol)
	if err == nil {
		prepare(ctx, inst.info)
		err = inst.configure(ctx, s.host, s.target)
	}
	if err != nil {
		inst.kill()
		return nil, err
	}
	return &generation[T]{slot: s, client: client, inst: inst, since: inst.since}, nil
}

func (s *slot[T]) inProcess(ctx context.Context) (*generation[T], error) {
	p := s.target.impl()
	impl := p.Impl
	client, ok := impl.(T)
	if !ok {
		return nil, s.target.failed(fmt.Sprintf("it is a %T, which does not implement its kind", impl), "")
	}
	if err := server.Configure(ctx, impl, s.host.settings(s.target)); err != nil {
		return nil, err
	}
	return &generation[T]{slot: s, client: client, since: time.Now(), version: p.Version}, nil
}

// exitDelay is how long to wait after the connection broke before asking a remaining process whether it still
// serves.
const exitDelay = 2 * time.Second

// attempts is how many times a call is tried if the process dies each time: a call that crashes its plugin must not
// crash every generation that follows.
const attempts = 3

// call runs fn on the running generation, and again on the next one if the process dies during the call. If an attached
// process disconnects during the call, the call gets its full time again, because time spent in a debugger is not
// counted.
func (s *slot[T]) call(ctx context.Context, fn func(context.Context, T) error) error {
	detached, err := s.tryCall(ctx, fn)
	for detached {
		free, cancel := withoutDeadline(ctx)
		detached, err = s.tryCall(free, fn)
		cancel()
	}
	return err
}

// tryCall is like call, but returns detached if an attached process disconnected during the call.
func (s *slot[T]) tryCall(ctx context.Context, fn func(context.Context, T) error) (detached bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.host.opts.CallTimeout)
	defer cancel()
	for attempt := 1; ; attempt++ {
		g, err := s.run(ctx, fn)
		if g == nil || attempt == attempts || !died(ctx, g, err) {
			return false, err
		}
		if g.attached != nil {
			return true, err
		}
	}
}

// once is like call, but never retries.
func (s *slot[T]) once(ctx context.Context, fn func(context.Context, T) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.host.opts.CallTimeout)
	defer cancel()
	_, err := s.run(ctx, fn)
	return err
}

// run runs fn on a live generation and returns that generation, or nil if there was none.
func (s *slot[T]) run(ctx context.Context, fn func(context.Context, T) error) (*generation[T], error) {
	g, err := s.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer g.slot.release(g)
	if g.attached != nil {
		var cancel context.CancelFunc
		ctx, cancel = withoutDeadline(ctx)
		defer cancel()
	}
	began := time.Now()
	err = g.slot.secrets.redactError(fn(ctx, g.client))
	g.slot.count(g, err, time.Since(began))
	return g, err
}

func (s *slot[T]) count(g *generation[T], err error, took time.Duration) {
	if m := s.host.opts.Metrics; m != nil {
		m.PluginCall(s.target.kind, s.target.label, s.target.name, took, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	if !errors.Is(err, context.Canceled) {
		s.recent.add(took, errors.Is(err, plugins.ErrUnavailable))
	}
	switch {
	case errors.Is(err, plugins.ErrUnavailable):
		s.failures++
	case !errors.Is(err, context.Canceled):
		g.answered = time.Now()
	}
}

// died reports whether g's process has exited after a call that failed with err. A broken connection is noticed
// slightly before the process's exit. A plugin that reported its backend as unavailable is alive.
func died[T any](ctx context.Context, g *generation[T], err error) bool {
	if g.attached != nil {
		if isClosed(g.gone()) { // a call that found the connection closed does not return ErrDisconnected
			return errors.Is(err, plugins.ErrUnavailable)
		}
		ctx = context.WithoutCancel(ctx) // the deadline may have passed in the debugger
	}
	return g.gone() != nil && errors.Is(err, host.ErrDisconnected) && g.awaitExit(ctx)
}

// awaitExit waits until the process of g, whose connection broke, has exited. It returns false if the process still
// serves, or when ctx ends: on an overloaded machine the exit may be noticed seconds later.
func (g *generation[T]) awaitExit(ctx context.Context) bool {
	check := time.NewTicker(exitDelay)
	defer check.Stop()
	for {
		select {
		case <-g.gone():
			return true
		case <-ctx.Done():
			return false
		case <-check.C:
			if g.inst != nil && g.inst.ping(ctx) != nil {
				continue
			}
			return isClosed(g.gone())
		}
	}
}

// acquire waits, for a bounded time, for a live generation, and counts a call on it. If the slot has a
// successor, it returns the successor's.
func (s *slot[T]) acquire(ctx context.Context) (*generation[T], error) {
	patience := time.NewTimer(s.host.opts.ReplaceWait)
	defer patience.Stop()
	for {
		g, changed := s.tryAcquire()
		switch {
		case g != nil:
			return g, nil
		case changed == nil:
			return nil, s.unavailable("it was closed")
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, s.unavailable(fmt.Sprintf("it is being replaced (%v)", ctx.Err()))
		case <-patience.C:
			return nil, s.unavailable("it could not be replaced in time")
		}
	}
}

// tryAcquire is like acquire, but does not wait. It returns a generation, or a channel that is closed at the next
// change, or neither if the slot is closed.
func (s *slot[T]) tryAcquire() (*generation[T], <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch g := s.gen; {
	case s.successor != nil:
		return s.successor.tryAcquire()
	case s.attached != nil && !isClosed(s.attached.gone()):
		s.attached.inFlight++
		return s.attached, nil
	case s.closing && g == nil:
		return nil, nil
	case s.suspended == nil && g != nil && !isClosed(g.gone()):
		g.inFlight++
		return g, nil
	}
	return nil, s.changed
}

func (s *slot[T]) release(g *generation[T]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g.inFlight--
	if g.inFlight == 0 && (s.closing || s.suspended != nil || g.attached != nil) {
		s.notify()
	}
}

func (s *slot[T]) unavailable(why string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lastErr != nil {
		return fmt.Errorf("%w: %s plugin %q: %s: %s", plugins.ErrUnavailable, s.target.kind, s.target.name, why, s.lastErr.Error())
	}
	return fmt.Errorf("%w: %s plugin %q: %s", plugins.ErrUnavailable, s.target.kind, s.target.name, why)
}

// notify wakes everything that waits for a change. The caller holds mu.
func (s *slot[T]) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Outdated reports whether the adapter's file has changed since it was started. The error says why the plugin
// could not be started now.
func (s *slot[T]) Outdated() (bool, error) {
	now, err := s.host.find(s.target.kind, s.target.config)
	return err == nil && now.sha256 != s.target.sha256, err
}

// closeLinger is how long a closed slot still accepts calls from users that obtained the handle just before it
// was replaced.
const closeLinger = 100 * time.Millisecond

// Close stops the plugin once its calls have finished, or when ctx ends. Slots that were suspended for it, and are
// not closed themselves, resume.
func (s *slot[T]) Close(ctx context.Context) {
	s.mu.Lock()
	first := !s.closing
	s.closing = true
	s.mu.Unlock()
	if !first {
		<-s.ended
		return
	}
	s.returnCalls()
	s.endAttachment()
	s.linger(ctx)
	s.awaitIdle(ctx)
	close(s.stop)
	s.interrupt()
	s.host.closed(s)
	<-s.ended
	s.resumeOld(ctx)
}

func (s *slot[T]) linger(ctx context.Context) {
	linger := time.NewTimer(closeLinger)
	defer linger.Stop()
	select {
	case <-linger.C:
	case <-ctx.Done():
	}
}

// awaitIdle returns when there are no pending calls, or when ctx ends.
func (s *slot[T]) awaitIdle(ctx context.Context) {
	for {
		s.mu.Lock()
		idle := s.gen == nil || s.gen.inFlight == 0
		changed := s.changed
		s.mu.Unlock()
		if idle {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// executable returns the file that the plugin's processes are started from.
func (s *slot[T]) executable() string { return s.host.keptPath(s.target) }

// has reports whether the plugin has a capability of its kind. inProcess decides for an in-process
// implementation.
func (s *slot[T]) has(capability string, inProcess func(T) bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.attached != nil:
		return slices.Contains(s.attached.attached.info.Capabilities, capability)
	case s.gen == nil:
		return false
	case s.gen.inst == nil:
		return inProcess(s.gen.client)
	}
	return slices.Contains(s.gen.inst.info.Capabilities, capability)
}

// status returns the state of the plugin.
func (s *slot[T]) status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := Status{
		Kind: s.target.kind, Name: s.target.label, Adapter: s.target.name, Path: s.target.path, State: Restarting,
		SHA256: s.target.sha256, Restarts: s.restarts, Calls: s.calls, Failures: s.failures,
	}
	p50, p99, why := s.recent.figures()
	st.P50, st.P99, st.Degraded, st.LastErr = p50.Seconds(), p99.Seconds(), why != "", why
	if s.lastErr != nil {
		st.LastErr = s.lastErr.Error()
	}
	if s.attached != nil {
		st.State, st.Version, st.Since, st.Protocol = Attached, s.attached.attached.info.Version, s.attached.since, newestProtocol
		return st
	}
	if s.gen == nil {
		return st
	}
	st.Since = s.gen.since
	if s.gen.inst == nil {
		st.State, st.Version = InProcessState, s.gen.version
		return st
	}
	st.State, st.Version = Running, s.gen.inst.info.Version
	st.PID, st.Protocol = s.gen.inst.run.process().PID(), s.gen.inst.protocol
	st.Memory = residentBytes(st.PID)
	return st
}

// Probe makes a call without side effects to each loaded plugin of a kind. The error names the first one that
// does not respond before ctx ends: its process has exited and is not replaced in time, it hangs, or it cannot
// reach its backend. Plugins that are being closed are skipped.
func (h *Host) Probe(ctx context.Context, kind plugins.Kind) error {
	for _, s := range h.loaded() {
		if s.status().Kind != kind {
			continue
		}
		if err := s.probe(ctx); err != nil {
			return err
		}
	}
	return nil
}

// probe makes the kind's call without side effects.
func (s *slot[T]) probe(ctx context.Context) error {
	s.mu.Lock()
	closing := s.closing
	s.mu.Unlock()
	if closing {
		return nil
	}
	if err := s.call(ctx, s.kind.probe); err != nil {
		return fmt.Errorf("the %s plugin %q does not respond: %w", s.target.kind, s.target.label, err)
	}
	return nil
}
