package apps

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"slices"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/instance"
	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/core/apps/offer"
	"github.com/ropewalk/ropewalk/core/link"
	"github.com/ropewalk/ropewalk/core/rpc"
	"github.com/ropewalk/ropewalk/core/trust"
)

// IsRunning implements interact.App.
func (a *app) IsRunning() bool { return a.now.Load().state == core.StateRunning }

// Roots implements interact.App: it returns the directories that were granted or that the configuration allows.
func (a *app) Roots() []string {
	record, settings := a.now.Load().record, a.manager.sandboxOf(a.key)
	if record.Remote != nil {
		return nil
	}
	paths := slices.Concat(settings.Read, settings.Write)
	for _, p := range record.Permissions {
		if state, _ := a.manager.stateOf(record, p); p.Kind.IsPath() && state == core.PermissionGranted {
			paths = append(paths, p.Target)
		}
	}
	slices.Sort(paths)
	return slices.DeleteFunc(slices.Compact(paths), func(path string) bool {
		info, err := os.Stat(path)
		return err != nil || !info.IsDir()
	})
}

// StartFor implements interact.App: it starts another instance of the app, for one session or for all stateless
// clients.
func (a *app) StartFor(ctx context.Context, s interact.Session) (instance.Instance, error) {
	release, err := a.manager.starts.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	if s.Account != "" {
		return a.startForAccount(ctx, s)
	}
	spec := a.spec()
	spec.ClientCapabilities, spec.OnRequest = s.ClientCapabilities, s.OnRequest
	spec.Stateless = spec.Stateless || s.ID == ""
	session := s.ID
	if s.OneCall {
		session = "" // it serves a stateless client
	}
	spec.OnNotification = func(n rpc.Notification, _ []link.Caller) {
		if session != "" || n.Method == "notifications/resources/updated" { // other notifications belong to older revisions
			a.publishTo(session, n)
		}
	}
	limit, cancel := context.WithTimeout(ctx, spec.StartTimeout)
	defer cancel()
	in, err := a.manager.start(limit, spec)
	if err != nil {
		a.log.Warn("could not start another instance of an app", "stateless", spec.Stateless, "reason", core.TextOf(err))
		return nil, err
	}
	a.applyLogLevel(ctx, in)
	a.subscribeAgain(ctx, in, a.manager.subscriptions.OfSession(sessionKey{App: a.key, Session: session}))
	if !s.OneCall && spec.Stateless == in.Info().Stateless {
		a.showSessionLists(in, s.ID)
	}
	return in, nil
}

// startForAccount starts an instance that uses one account, for one session or for all clients.
func (a *app) startForAccount(ctx context.Context, s interact.Session) (instance.Instance, error) {
	spec := a.spec()
	spec.Authorizer = a.manager.o.Accounts.Authorizer(s.Account)
	spec.ClientCapabilities, spec.OnRequest = s.ClientCapabilities, s.OnRequest
	if s.ID == "" {
		spec.ClientCapabilities = json.RawMessage(interact.AllCapabilities)
	}
	// A notification that does not belong to a call of a single session is dropped, because it may be private to the
	// account.
	spec.OnNotification = func(n rpc.Notification, callers []link.Caller) {
		if session := cmp.Or(s.ID, interact.SessionOf(callers)); session != "" && !s.OneCall {
			a.publishTo(session, n)
		}
	}
	limit, cancel := context.WithTimeout(ctx, spec.StartTimeout)
	defer cancel()
	in, err := a.startEither(limit, spec)
	if err != nil {
		a.log.Warn("could not start an app for an account", "account", s.Account, "reason", core.TextOf(err))
		return nil, err
	}
	a.applyLogLevel(ctx, in)
	if s.ID == "" {
		a.publishLists(in, s.Account)
	}
	return in, nil
}

// publishTo publishes a notification to one session, or to all stateless clients if session is "".
func (a *app) publishTo(session string, n rpc.Notification) {
	a.manager.listeners.Publish(a.key.Workspace, Notification{Server: a.key.Name, Session: session, FromPool: true, Notification: n})
}

// EndSession ends all instances that apps have for a session (interact.Client).
func (m *Manager) EndSession(session string) { m.broker.EndSession(session) }

// RootsChanged notifies a session's instances that its client's roots have changed.
func (m *Manager) RootsChanged(ctx context.Context, session string) {
	m.broker.NotifyRootsChanged(ctx, session)
}

// sessionLists are the lists of an app's instance for one session or for all stateless clients. They are used by a
// single goroutine, for as long as the instance lives.
type sessionLists struct {
	app      *app
	instance instance.Instance
	session  string // "" for stateless clients

	listed *core.Offer // as the instance listed it; nil until it has been read
	shown  *core.Offer // as it is in the catalog, without tools that are held back; nil until then
}

// showSessionLists shows the lists of an instance to its session until the instance ends. It works in the background,
// so the call for which the instance was started does not wait for it.
func (a *app) showSessionLists(in instance.Instance, session string) {
	l := &sessionLists{app: a, instance: in, session: session}
	a.manager.background(func(ctx context.Context) {
		a.publishListChanges(session, l.read(ctx, nil))
		a.followLists(ctx, in, func(announced []core.Kind) {
			a.publishListChanges(session, append(l.read(ctx, announced), announced...))
			l.rereadShared(announced)
		})
		if l.shown != nil {
			a.publishListChanges(session, a.manager.catalog.RemoveOwn(a.key.Workspace, session, a.key.Name, l.shown))
		}
	})
}

// read reads the lists that the instance announced, or all lists the first time, and shows them. It returns those that
// differ from what the session saw before.
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
		l.app.log.Warn("could not read the lists of a session's instance; keeping the old ones", "error", err)
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

// show shows lists to the session, without the tools that may not be used. It returns the lists that changed.
func (l *sessionLists) show(ctx context.Context, lists core.Offer) (changed []core.Kind, err error) {
	a := l.app
	if pins := a.manager.o.Pins; pins != nil {
		revision := pins.Revision()
		lists, err = pins.CheckOffer(ctx, trust.Listing{
			Key: a.pinKey(l.instance), Dynamic: announcesTools(l.instance), Before: a.pins.allListed().Tools,
		}, lists, l.instance.Info().Instructions)
		if err != nil {
			return nil, err
		}
		defer func() {
			if pins.Revision() != revision { // a decision was made before the lists were shown
				l.instance.AddListChange(core.KindTools)
			}
		}()
	}
	l.shown = &lists
	return a.manager.catalog.SetOwn(a.key.Workspace, l.session, a.key.Name, &lists), nil
}

// rereadShared rereads the shared instance's lists when an instance for stateless clients announces a change, because
// some apps announce a change for all connections on only one of them.
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

// rereadSessionTools makes the instances of sessions list their tools again, which also checks them.
func (a *app) rereadSessionTools() {
	for _, in := range a.dialog.Instances() {
		in.AddListChange(core.KindTools)
	}
}

// removeSessionLists removes the lists of all sessions. It is called before the instances of the sessions are ended.
func (a *app) removeSessionLists() {
	for session, changed := range a.manager.catalog.RemoveOwnOf(a.key.Workspace, a.key.Name) {
		a.publishListChanges(session, changed)
	}
}

// publishListChanges announces changed lists to one session, or to all stateless clients if session is "".
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
