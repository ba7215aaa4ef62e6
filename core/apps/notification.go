package apps

import (
	"sync"

	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/core/rpc"
)

// Notification is a notification of an app that belongs to no call.
type Notification struct {
	Server string
	// Session is the session that it is for, "" for everyone in the workspace.
	Session string
	// Apart says that an instance of the session pool sent it: it is for Session alone or, when that is
	// "", for clients without a session.
	Apart bool
	// Without are the sessions that get this notification from an instance of their own, "" for clients
	// without a session.
	Without []string
	rpc.Notification
}

// listeners are those who receive the notifications of a workspace's apps.
type listeners struct {
	mu  sync.RWMutex
	all map[string]map[*listener]struct{} // by workspace
}

type listener struct{ receive func(Notification) }

func newListeners() *listeners { return &listeners{all: map[string]map[*listener]struct{}{}} }

// Listen calls receive with the notifications of the workspace's apps that belong to no call: log
// messages (notifications/message), also about calls that are all of one session, updates of resources
// (notifications/resources/updated), the end of elicitations (notifications/elicitation/complete), and
// changed lists of an instance that serves one session. receive must not wait; the calls for one app
// come in its wire order.
func (m *Manager) Listen(workspace string, receive func(Notification)) (stop func()) {
	one := &listener{receive}
	l := m.listeners
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all[workspace] == nil {
		l.all[workspace] = map[*listener]struct{}{}
	}
	l.all[workspace][one] = struct{}{}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.all[workspace], one)
		if len(l.all[workspace]) == 0 {
			delete(l.all, workspace)
		}
	}
}

func (l *listeners) publish(workspace string, n Notification) {
	l.mu.RLock()
	receivers := make([]*listener, 0, len(l.all[workspace]))
	for one := range l.all[workspace] {
		receivers = append(receivers, one)
	}
	l.mu.RUnlock()
	for _, one := range receivers {
		one.receive(n)
	}
}

// publishNotification passes on a notification of the app's shared instance that belongs to no call.
func (a *app) publishNotification(n rpc.Notification) {
	out := Notification{Server: a.key.Name, Notification: n}
	switch n.Method {
	case "notifications/message":
		if out.Session = interact.SessionOf(n.Callers); out.Session == "" && len(n.Callers) > 0 {
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
	a.manager.listeners.publish(a.key.Workspace, out)
}
