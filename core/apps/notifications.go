package apps

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/core/apps/instance"
	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/core/link"
	"github.com/ropewalk/ropewalk/core/rpc"
)

// Listen calls receive for the notifications from the workspace's apps that do not belong to a call. These are log
// messages (notifications/message), including those about calls of a single session, resource updates
// (notifications/resources/updated), completed elicitations (notifications/elicitation/complete), and changed lists
// of an instance that serves one session. receive must not block. For each app, it is called in the order in which
// the app sent the notifications.
func (m *Manager) Listen(workspace string, receive func(Notification)) (stop func()) {
	return m.listeners.Listen(workspace, receive)
}

// publishNotification forwards a notification from the app's shared instance that does not belong to a call, or could
// belong to any of several.
func (a *app) publishNotification(n rpc.Notification, callers []link.Caller) {
	out := Notification{Server: a.key.Name, Notification: n}
	switch n.Method {
	case "notifications/message":
		if out.Session = interact.SessionOf(callers); out.Session == "" && len(callers) > 0 {
			return // the message is about a call of one of several clients, and does not say which
		}
	case "notifications/resources/updated":
		out.Except = a.dialog.Sessions()
	case "notifications/elicitation/complete":
		if out.Session = a.dialog.ElicitationSession(n); out.Session == "" {
			return
		}
	default: // clients do not know any others
		return
	}
	a.manager.listeners.Publish(a.key.Workspace, out)
}

// appTimeout limits how long an app may take to accept a log level or a subscription.
const appTimeout = 5 * time.Second

// SetLogLevel sets the log level of all apps in a workspace, including those that start later.
func (m *Manager) SetLogLevel(ctx context.Context, workspace, level string) {
	if !m.logLevels.Set(workspace, level) {
		return
	}
	var setting sync.WaitGroup
	defer setting.Wait()
	for _, a := range m.in(workspace) {
		for _, in := range a.instances() {
			setting.Go(func() { a.applyLogLevel(ctx, in) })
		}
	}
}

// instances returns all instances of the app that can be called.
func (a *app) instances() []instance.Instance {
	all := a.dialog.Instances()
	if in := a.current(); in != nil {
		all = append(all, in)
	}
	return all
}

// applyLogLevel sets the log level of one instance. If the workspace has no level, the app decides.
func (a *app) applyLogLevel(ctx context.Context, in instance.Instance) {
	level := a.manager.logLevels.Of(a.key.Workspace)
	if info := in.Info(); level == "" || info.Stateless || !info.Offers("logging") {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, appTimeout)
	defer cancel()
	params, err := json.Marshal(map[string]string{"level": level})
	if err != nil {
		return
	}
	if _, err := in.Call(ctx, link.Request{Method: "logging/setLevel", Params: params}); err != nil && ctx.Err() == nil {
		a.log.Debug("app did not accept a log level", "level", level, "error", err)
	}
}

// Subscribe subscribes a user to a resource, identified by the URI that its app uses, for a session (interact.Client);
// session is "" for a client without one. Listen delivers the updates until Unsubscribe has been called as often as
// Subscribe. The subscription is repeated when the app restarts, and when it starts another instance for the session.
// The errors are those of Call.
func (m *Manager) Subscribe(ctx context.Context, workspace, server, session, user, uri string) error {
	a, err := m.find(workspace, server)
	if err != nil {
		return err
	}
	k := sessionKey{App: a.key, Session: session}
	first, err := m.subscriptions.Add(k, user, uri)
	if err != nil {
		return err
	}
	if first {
		err = a.subscribeShared(ctx, user, "resources/subscribe", uri, instance.Instance.Subscribe)
	}
	if accepted := a.subscribeSession(ctx, session, uri, instance.Instance.Subscribe); err != nil && !accepted {
		m.subscriptions.Remove(k, user, uri)
		return err
	}
	return nil
}

// Unsubscribe undoes one Subscribe. It does nothing if the app is not running.
func (m *Manager) Unsubscribe(ctx context.Context, workspace, server, session, user, uri string) error {
	k := sessionKey{App: interact.AppRef{Workspace: workspace, Name: server}, Session: session}
	lastOfApp, lastOfSession := m.subscriptions.Remove(k, user, uri)
	a, err := m.find(workspace, server)
	if err != nil {
		return nil //nolint:nilerr // an app that is gone sends no updates
	}
	if lastOfSession {
		a.subscribeSession(ctx, session, uri, instance.Instance.Unsubscribe)
	}
	if !lastOfApp || a.current() == nil {
		return nil
	}
	return a.subscribeShared(ctx, "", "resources/unsubscribe", uri, instance.Instance.Unsubscribe)
}

// subscribeSession changes a subscription on the app's instances for a session, and reports whether any of them
// accepted it. It waits for instances that are starting, because they may have read the subscriptions before this
// change.
func (a *app) subscribeSession(ctx context.Context, session, uri string, change func(instance.Instance, context.Context, string) error) (accepted bool) {
	limit, cancel := context.WithTimeout(ctx, appTimeout)
	defer cancel()
	for _, in := range a.dialog.AwaitInstances(limit, session) {
		if err := change(in, limit, uri); err != nil {
			a.log.Debug("a session's instance did not accept a subscription", "uri", uri, "error", err)
			continue
		}
		accepted = true
	}
	return accepted
}

func (a *app) subscribeShared(ctx context.Context, user, method, uri string, change func(instance.Instance, context.Context, string) error) error {
	in, err := a.queue(ctx, user)
	if err != nil {
		return err
	}
	defer a.dialog.Slots().Release(user)
	limit, cancel := context.WithTimeoutCause(ctx, a.manager.o.CallTimeout, interact.ErrTimeout)
	defer cancel()
	if err := change(in, limit, uri); err != nil {
		return a.dialog.CallError(ctx, in, method, err)
	}
	return nil
}

// subscribeAgain subscribes an instance that has just started to resources.
func (a *app) subscribeAgain(ctx context.Context, in instance.Instance, uris []string) {
	for _, uri := range uris {
		limit, cancel := context.WithTimeout(ctx, appTimeout)
		err := in.Subscribe(limit, uri)
		cancel()
		if err != nil && ctx.Err() == nil {
			a.log.Debug("an app that restarted did not accept a subscription", "uri", uri, "error", err)
		}
	}
}
