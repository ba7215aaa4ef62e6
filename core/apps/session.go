package apps

import (
	"context"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/instance"
	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/core/apps/notify"
	"github.com/ropewalk/ropewalk/core/apps/offer"
	"github.com/ropewalk/ropewalk/core/rpc"
	"github.com/ropewalk/ropewalk/core/trust"
)

// Key implements interact.App.
func (a *app) Key() interact.AppKey { return a.key }

// Bundle implements interact.App.
func (a *app) Bundle() interact.Bundle {
	record := a.now.Load().record
	return interact.Bundle{Name: record.PublicName(), Version: record.Version}
}

// IsRunning implements interact.App.
func (a *app) IsRunning() bool { return a.now.Load().state == core.StateRunning }

// StartFor implements interact.App: it starts the app once more, for one session or for all stateless
// clients.
func (a *app) StartFor(ctx context.Context, s interact.Session) (interact.Instance, error) {
	release, err := a.manager.starts.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	spec := a.spec()
	spec.ClientCapabilities, spec.OnRequest = s.ClientCapabilities, s.OnRequest
	spec.Stateless = spec.Stateless || s.ID == ""
	session := s.ID
	if s.OneCall {
		session = "" // it serves a stateless client
	}
	publish := func(n rpc.Notification) { a.publishTo(session, n) }
	if spec.OnNotification = publish; session == "" {
		spec.OnNotification = func(n rpc.Notification) {
			if n.Method == "notifications/resources/updated" { // all others that belong to no request are of the older revisions
				publish(n)
			}
		}
	}
	in, err := a.manager.start(ctx, spec)
	if err != nil {
		a.log.Warn("app could not be started once more", "stateless", spec.Stateless, "reason", core.TextOf(err))
		return nil, err
	}
	a.applyLogLevel(ctx, in)
	a.subscribeAgain(ctx, in, a.manager.subscriptions.OfSession(notify.SessionKey{App: a.key, Session: session}))
	if !s.OneCall && spec.Stateless == in.Info().Stateless {
		a.showSessionLists(in, s.ID)
	}
	return in, nil
}

// publishTo publishes a notification to one session, or to all stateless clients for "".
func (a *app) publishTo(session string, n rpc.Notification) {
	a.manager.listeners.Publish(a.key.Workspace, notify.Notification{Server: a.key.Name, Session: session, Apart: true, Notification: n})
}

// EndSession ends what apps keep for one session (interact.Client).
func (m *Manager) EndSession(session string) { m.broker.EndSession(session) }

// RootsChanged tells the instances that apps have for a session that its client's roots changed.
func (m *Manager) RootsChanged(ctx context.Context, session string) {
	m.broker.NotifyRootsChanged(ctx, session)
}

// sessionLists are the lists of the instance that an app has for one session, or for all stateless
// clients. One goroutine uses them, for as long as the instance lives.
type sessionLists struct {
	app      *app
	instance instance.Instance
	session  string // "" for stateless clients

	listed *core.Offer // as the instance listed it; nil until that was read
	shown  *core.Offer // without the tools that are held back, as the catalog has it; nil until then
}

// showSessionLists shows the lists of an instance to its session until the instance ends. The call that
// the instance was started for does not wait for them.
func (a *app) showSessionLists(in instance.Instance, session string) {
	ctx, done, err := a.manager.beginWork(context.Background())
	if err != nil { // the server is shutting down
		return
	}
	l := &sessionLists{app: a, instance: in, session: session}
	go func() {
		defer done()
		a.publishListChanges(session, l.read(ctx, nil))
		followLists(ctx, in, func(announced []core.Kind) {
			a.publishListChanges(session, append(l.read(ctx, announced), announced...))
			l.rereadShared(announced)
		})
		if l.shown != nil {
			a.publishListChanges(session, a.manager.catalog.RemoveOwn(a.key.Workspace, session, a.key.Name, l.shown))
		}
	}()
}

// read reads the lists that the instance announced, all of them the first time, and shows them. It returns
// those that differ from what the session saw before.
func (l *sessionLists) read(ctx context.Context, announced []core.Kind) (changed []core.Kind) {
	limit, cancel := context.WithTimeout(ctx, l.app.manager.o.StartTimeout)
	defer cancel()
	lists, err := l.list(limit, announced)
	if err == nil {
		err = offer.CheckSize(&lists)
	}
	if err == nil {
		l.listed = &lists
		changed, err = l.show(limit, lists)
	}
	if err != nil && ctx.Err() == nil && !isClosed(l.instance.Done()) {
		l.app.log.Warn("lists of an instance of a session could not be read; the old ones stay", "error", err)
	}
	return changed
}

func (l *sessionLists) list(ctx context.Context, changed []core.Kind) (core.Offer, error) {
	reader := l.app.reader(l.instance)
	if l.listed == nil {
		return reader.ReadAll(ctx, l.instance)
	}
	lists := *l.listed
	for _, kind := range changed {
		if err := reader.ReadList(ctx, l.instance, kind, &lists); err != nil {
			return lists, err
		}
	}
	return lists, nil
}

// show shows lists to the session, without the tools that nobody may use, and returns what changed.
func (l *sessionLists) show(ctx context.Context, lists core.Offer) (changed []core.Kind, err error) {
	a := l.app
	if pins := a.manager.o.Pins; pins != nil {
		revision := pins.Revision()
		lists.Tools, lists.Held, err = pins.Check(ctx, trust.Listing{
			Key: a.pinKey(l.instance), Tools: lists.Tools, Dynamic: announcesTools(l.instance), Before: a.pins.allListed(),
		})
		if err != nil {
			return nil, err
		}
		defer func() {
			if pins.Revision() != revision { // there was a decision before the lists were shown
				l.instance.AddListChange(core.KindTools)
			}
		}()
	}
	l.shown = &lists
	return a.manager.catalog.SetOwn(a.key.Workspace, l.session, a.key.Name, &lists), nil
}

// rereadShared has the lists of the shared instance read again when an instance for stateless clients
// announces a change: some apps announce to one connection what concerns all.
func (l *sessionLists) rereadShared(changed []core.Kind) {
	if l.session != "" {
		return
	}
	if in := l.app.current(); in != nil {
		for _, kind := range changed {
			in.AddListChange(kind)
		}
	}
}

// rereadSessionTools has the instances of sessions list their tools again, which checks these.
func (a *app) rereadSessionTools() {
	for _, in := range a.dialog.Instances() {
		if lister, ok := in.(instance.Instance); ok {
			lister.AddListChange(core.KindTools)
		}
	}
}

// removeSessionLists is called before the app's instances of sessions are ended.
func (a *app) removeSessionLists() {
	for session, changed := range a.manager.catalog.RemoveOwnOf(a.key.Workspace, a.key.Name) {
		a.publishListChanges(session, changed)
	}
}

// publishListChanges announces changed lists to one session, or to all stateless clients for "".
func (a *app) publishListChanges(session string, changed []core.Kind) {
	announced := map[core.Kind]bool{}
	for _, kind := range changed {
		if kind == core.KindTemplates { // MCP has one notification for both
			kind = core.KindResources
		}
		if !announced[kind] {
			announced[kind] = true
			a.publishTo(session, rpc.Notification{Method: "notifications/" + string(kind) + "/list_changed"})
		}
	}
}
