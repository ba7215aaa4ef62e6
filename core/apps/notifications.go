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

// Listen calls receive with the notifications of the workspace's apps that belong to no call: log
// messages (notifications/message), also about calls that are all of one session, updates of resources
// (notifications/resources/updated), the end of elicitations (notifications/elicitation/complete), and
// changed lists of an instance that serves one session. receive must not wait; the calls for one app
// come in its wire order.
func (m *Manager) Listen(workspace string, receive func(Notification)) (stop func()) {
	return m.listeners.Listen(workspace, receive)
}

// publishNotification passes on a notification of the app's shared instance that belongs to no call, or to that of one
// of several callers.
func (a *app) publishNotification(n rpc.Notification, callers []link.Caller) {
	out := Notification{Server: a.key.Name, Notification: n}
	switch n.Method {
	case "notifications/message":
		if out.Session = interact.SessionOf(callers); out.Session == "" && len(callers) > 0 {
			return // it concerns calls of several clients, and does not say which
		}
	case "notifications/resources/updated":
		out.Without = a.dialog.Sessions()
	case "notifications/elicitation/complete":
		if out.Session = a.dialog.ElicitationSession(n); out.Session == "" {
			return
		}
	default: // clients do not know other notifications
		return
	}
	a.manager.listeners.Publish(a.key.Workspace, out)
}

// appTimeout is how long an app may take to accept a log level or a subscription.
const appTimeout = 5 * time.Second

// SetLogLevel sets the log level of the apps of a workspace, also of those that start later.
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

// applyLogLevel sets the log level of one instance. Without a level the app decides itself.
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

// Subscribe subscribes to one resource, named as its app names it, for a session (interact.Client), or
// "" for a client without one. Listen receives the updates until Unsubscribe was called as often. The
// app gets the subscription again after a restart, and so does the instance that it has for the
// session. The errors are those of Call.
func (m *Manager) Subscribe(ctx context.Context, workspace, server, session, uri string) error {
	a, err := m.find(workspace, server)
	if err != nil {
		return err
	}
	k := sessionKey{App: a.key, Session: session}
	first, err := m.subscriptions.Add(k, uri)
	if err != nil {
		return err
	}
	if first {
		err = a.subscribeShared(ctx, "resources/subscribe", uri, instance.Instance.Subscribe)
	}
	if accepted := a.subscribeSession(ctx, session, uri, instance.Instance.Subscribe); err != nil && !accepted {
		m.subscriptions.Remove(k, uri)
		return err
	}
	return nil
}

// Unsubscribe is the opposite of one Subscribe. It does nothing for an app that does not run.
func (m *Manager) Unsubscribe(ctx context.Context, workspace, server, session, uri string) error {
	k := sessionKey{App: interact.AppKey{Workspace: workspace, Name: server}, Session: session}
	lastOfApp, lastOfSession := m.subscriptions.Remove(k, uri)
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
	return a.subscribeShared(ctx, "resources/unsubscribe", uri, instance.Instance.Unsubscribe)
}

// subscribeSession changes a subscription of the instances that the app has for a session, and reports
// whether one accepted it. Those that are starting are waited for: they may have read the subscriptions
// too early.
func (a *app) subscribeSession(ctx context.Context, session, uri string, change func(instance.Instance, context.Context, string) error) (accepted bool) {
	limit, cancel := context.WithTimeout(ctx, appTimeout)
	defer cancel()
	for _, in := range a.dialog.AwaitInstances(limit, session) {
		if err := change(in, limit, uri); err != nil {
			a.log.Debug("instance of a session did not accept a subscription", "uri", uri, "error", err)
			continue
		}
		accepted = true
	}
	return accepted
}

func (a *app) subscribeShared(ctx context.Context, method, uri string, change func(instance.Instance, context.Context, string) error) error {
	in, err := a.queue(ctx)
	if err != nil {
		return err
	}
	defer a.dialog.ReleaseSlot()
	limit, cancel := context.WithTimeoutCause(ctx, a.manager.o.CallTimeout, interact.ErrTimeout)
	defer cancel()
	if err := change(in, limit, uri); err != nil {
		return a.dialog.CallError(ctx, in, method, err)
	}
	return nil
}

// subscribeAgain subscribes an instance that has started to resources.
func (a *app) subscribeAgain(ctx context.Context, in instance.Instance, uris []string) {
	for _, uri := range uris {
		limit, cancel := context.WithTimeout(ctx, appTimeout)
		err := in.Subscribe(limit, uri)
		cancel()
		if err != nil && ctx.Err() == nil {
			a.log.Debug("app that has started did not accept a subscription", "uri", uri, "error", err)
		}
	}
}
