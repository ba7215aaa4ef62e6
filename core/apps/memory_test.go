package apps

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/instance"
	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/core/link"
	"github.com/ropewalk/ropewalk/core/process"
	"github.com/ropewalk/ropewalk/core/rpc"
)

// memoryRecords holds records in memory. While full is set, every write fails, as on a full disk.
type memoryRecords struct {
	mu          sync.Mutex
	rows        map[interact.AppRef]core.Installation
	uninstalled map[interact.AppRef]core.Installation
	files       map[string][]byte
	kept        map[string]string
	full        bool
	slow        time.Duration // how long a write takes
}

func newMemoryRecords(rows ...core.Installation) *memoryRecords {
	m := &memoryRecords{rows: map[interact.AppRef]core.Installation{}, uninstalled: map[interact.AppRef]core.Installation{}, files: map[string][]byte{}, kept: map[string]string{}}
	for _, r := range rows {
		m.rows[interact.AppRef{Workspace: r.Workspace, Name: r.Name}] = r
	}
	return m
}

var errFull = errors.New("no space left on device")

func (m *memoryRecords) AddInstallation(ctx context.Context, i core.Installation) error {
	wait(context.Background(), m.slow)
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.writable(ctx); err != nil {
		return err
	}
	if _, taken := m.rows[interact.AppRef{Workspace: i.Workspace, Name: i.Name}]; taken {
		return core.AlreadyInstalled(i.Name)
	}
	m.rows[interact.AppRef{Workspace: i.Workspace, Name: i.Name}] = i
	return nil
}

func (m *memoryRecords) writable(ctx context.Context) error {
	if m.full {
		return errFull
	}
	return ctx.Err()
}

func (m *memoryRecords) ChangeInstallation(ctx context.Context, workspace, name string, change func(*core.Installation) error) (core.Installation, error) {
	wait(context.Background(), m.slow)
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.rows[interact.AppRef{Workspace: workspace, Name: name}]
	if err := m.writable(ctx); err != nil {
		return r, err
	}
	if !ok {
		return r, notFound(name)
	}
	if err := change(&r); err != nil {
		return r, err
	}
	m.rows[interact.AppRef{Workspace: workspace, Name: name}] = r
	return r, nil
}

func (m *memoryRecords) DeleteInstallation(_ context.Context, workspace, name, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.full {
		return errFull
	}
	if m.rows[interact.AppRef{Workspace: workspace, Name: name}].ID == id {
		delete(m.rows, interact.AppRef{Workspace: workspace, Name: name})
	}
	return nil
}

func (m *memoryRecords) Uninstall(_ context.Context, workspace, name, id string, until time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := interact.AppRef{Workspace: workspace, Name: name}
	if m.full {
		return errFull
	}
	if r, ok := m.rows[k]; ok && r.ID == id {
		delete(m.rows, k)
		r.UndoUntil = until
		m.uninstalled[k] = r
	}
	return nil
}

func (m *memoryRecords) RestoreInstallation(_ context.Context, workspace, name string) (core.Installation, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := interact.AppRef{Workspace: workspace, Name: name}
	r, ok := m.uninstalled[k]
	if !ok || !time.Now().Before(r.UndoUntil) {
		return r, notFound(name)
	}
	delete(m.uninstalled, k)
	r.UndoUntil = time.Time{}
	m.rows[k] = r
	return r, nil
}

func (m *memoryRecords) Uninstalled(context.Context) ([]core.Installation, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Values(m.uninstalled)), nil
}

func (m *memoryRecords) PurgeUninstalled(_ context.Context, workspace, name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.uninstalled, func(k interact.AppRef, r core.Installation) bool {
		return name == "" && !time.Now().Before(r.UndoUntil) || k == interact.AppRef{Workspace: workspace, Name: name}
	})
	return nil
}

func (m *memoryRecords) Installation(_ context.Context, workspace, name string) (core.Installation, error) {
	if r, ok := m.get(workspace, name); ok {
		return r, nil
	}
	return core.Installation{}, notFound(name)
}

func (m *memoryRecords) Files(_ context.Context, sum string, to io.Writer) error {
	m.mu.Lock()
	content, ok := m.files[sum]
	m.mu.Unlock()
	if !ok {
		return core.Errorf(core.CodeNotFound, "no such files")
	}
	_, err := to.Write(content)
	return err
}

func (m *memoryRecords) PutSetting(ctx context.Context, name, value string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.writable(ctx); err != nil {
		return err
	}
	m.kept[name] = value
	return nil
}

func (m *memoryRecords) Settings(_ context.Context, prefix string) (map[string]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := maps.Clone(m.kept)
	maps.DeleteFunc(found, func(name, _ string) bool { return !strings.HasPrefix(name, prefix) })
	return found, nil
}

func (m *memoryRecords) PutKeptLists(ctx context.Context, workspace, app, sum, record string) error {
	return m.PutSetting(ctx, "lists/"+workspace+"/"+app, sum+" "+record)
}

func (m *memoryRecords) KeptLists(_ context.Context, workspace, app, sum string) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	record, found := strings.CutPrefix(m.kept["lists/"+workspace+"/"+app], sum+" ")
	if !found {
		return "", notFound(app)
	}
	return record, nil
}

func (m *memoryRecords) Installations(context.Context) ([]core.Installation, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []core.Installation
	for _, r := range m.rows {
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b core.Installation) int { return a.InstalledAt.Compare(b.InstalledAt) })
	return all, nil
}

func (m *memoryRecords) fill(full bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.full = full
}

func (m *memoryRecords) get(workspace, name string) (core.Installation, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.rows[interact.AppRef{Workspace: workspace, Name: name}]
	return r, ok
}

// memoryEvents holds the published events and their times.
type memoryEvents struct {
	mu       sync.Mutex
	list     []timedEvent
	progress []core.BundleProgress
	more     chan struct{} // closed and replaced at each event
}

type timedEvent struct {
	core.Event
	at time.Time
}

func newMemoryEvents() *memoryEvents { return &memoryEvents{more: make(chan struct{})} }

func (m *memoryEvents) Publish(e core.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p, ok := e.Data.(core.BundleProgress); ok { // kept separately because few tests need it
		m.progress = append(m.progress, p)
		return
	}
	m.list = append(m.list, timedEvent{e, time.Now()})
	close(m.more)
	m.more = make(chan struct{})
}

func (m *memoryEvents) all() []timedEvent {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.list)
}

// texts returns the events as short strings, such as "bundle.crashed 1".
func (m *memoryEvents) texts() []string {
	var out []string
	for _, e := range m.all() {
		out = append(out, eventText(e.Event))
	}
	return out
}

func eventText(e core.Event) string {
	if c, ok := e.Data.(core.BundleCrashed); ok {
		return e.Name + " " + string(rune('0'+c.RestartAttempt))
	}
	return e.Name
}

// wait waits for the n-th event with the given text, counting from 1.
func (m *memoryEvents) wait(ctx context.Context, text string, n int) error {
	for {
		m.mu.Lock()
		more, seen := m.more, 0
		for _, e := range m.list {
			if eventText(e.Event) == text {
				seen++
			}
		}
		m.mu.Unlock()
		if seen >= n {
			return nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return errors.Join(errors.New("no event "+text), ctx.Err())
		}
	}
}

// memoryApp is an app without a process. A test can start it, kill it, or make its starts fail.
type memoryApp struct {
	mu       sync.Mutex
	tools    []string
	refuses  string                              // why the next starts fail; "" if they succeed
	busy     bool                                // they fail because other apps use what they need
	hangs    bool                                // the next starts hang until they are cancelled
	takes    time.Duration                       // how long a start takes
	ends     time.Duration                       // how long a shutdown takes
	activity func(*process.Activity) (seen bool) // what its processes do; nil if nothing
	launches []time.Time
	current  *memoryInstance
	specs    []instance.Spec
	live     int
}

func (m *memoryApp) launch(ctx context.Context, b instance.Spec) (instance.Instance, error) {
	m.mu.Lock()
	m.specs = append(m.specs, b)
	m.launches = append(m.launches, time.Now())
	refuses, busy, hangs, takes := m.refuses, m.busy, m.hangs, m.takes
	m.mu.Unlock()
	if hangs {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if !wait(ctx, takes) {
		return nil, ctx.Err()
	}
	if refuses != "" {
		return nil, &instance.Failure{Reason: refuses, Busy: busy}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.live++
	m.current = &memoryInstance{app: m, spec: b, done: make(chan struct{}), ListChanges: instance.NewListChanges(), ended: make(chan struct{})}
	return m.current, nil
}

func (m *memoryApp) set(change func(*memoryApp)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change(m)
}

func (m *memoryApp) alive() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.live
}

func (m *memoryApp) started() []time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.launches)
}

// kill simulates kill -9 of the running process.
func (m *memoryApp) kill() {
	m.mu.Lock()
	i := m.current
	m.mu.Unlock()
	i.die()
}

func (m *memoryApp) announce() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.current.AddListChange(core.KindTools)
}

type memoryInstance struct {
	*instance.ListChanges
	spec  instance.Spec
	app   *memoryApp
	done  chan struct{}
	ended chan struct{}
	once  sync.Once
	end   sync.Once
}

func (i *memoryInstance) die() { i.once.Do(func() { close(i.done) }) }

func (i *memoryInstance) Call(ctx context.Context, r link.Request) (json.RawMessage, error) {
	method, params, notify := r.Method, r.Params, r.Notify
	if method == "slow" { // reports progress every minute
		for range 10 {
			if !wait(ctx, time.Minute) {
				return nil, context.Cause(ctx)
			}
			notify(rpc.Notification{Method: "notifications/progress"})
		}
	}
	if method == "ask" || method == "tools/call" { // asks its caller's client, and forwards its notifications
		return i.spec.OnRequest(ctx, rpc.Question{Method: instance.MethodElicit, Params: params, Notify: notify}, []link.Caller{r.Caller})
	}
	if method == "hang" {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-i.done:
			return nil, link.ErrClosed
		}
	}
	return params, nil
}

func (i *memoryInstance) Subscribe(context.Context, string) error               { return nil }
func (i *memoryInstance) Unsubscribe(context.Context, string) error             { return nil }
func (i *memoryInstance) Notify(context.Context, string, json.RawMessage) error { return nil }

func (i *memoryInstance) List(_ context.Context, kind core.Kind) ([]json.RawMessage, error) {
	if kind != core.KindTools {
		return nil, nil
	}
	i.app.mu.Lock()
	defer i.app.mu.Unlock()
	var raws []json.RawMessage
	for _, name := range i.app.tools {
		if strings.HasPrefix(name, "{") { // a whole definition
			raws = append(raws, json.RawMessage(name))
			continue
		}
		raw, err := json.Marshal(map[string]string{"name": name})
		if err != nil {
			return nil, err
		}
		raws = append(raws, raw)
	}
	return raws, nil
}

func (i *memoryInstance) Info() link.Info { return link.Info{Version: "7.7.7"} }
func (i *memoryInstance) Activity() (process.Activity, bool) {
	i.app.mu.Lock()
	defer i.app.mu.Unlock()
	a, seen := process.Activity{Processes: []int{1}}, true
	if i.app.activity != nil {
		seen = i.app.activity(&a)
	}
	return a, seen
}
func (i *memoryInstance) Done() <-chan struct{} { return i.done }
func (i *memoryInstance) Failure() *instance.Failure {
	return &instance.Failure{Reason: "the process ended by signal killed"}
}

func (i *memoryInstance) Shutdown(time.Duration) error {
	i.die()
	i.end.Do(func() {
		wait(context.Background(), i.app.ends)
		close(i.ended)
		i.app.set(func(m *memoryApp) { m.live-- })
	})
	return nil
}
