package apps

import (
	"sync"

	"github.com/ropewalk/ropewalk/core/rpc"
)

// Notification is what an app said by itself, about no call.
type Notification struct {
	Server string
	// Session is who it is for: the session that has the app's instance to itself. "" is everyone in
	// the workspace whom it concerns.
	Session string
	// Apart tells that an instance beside the shared one said it: it is for Session alone, or, when
	// that is "", for those without a session.
	Apart bool
	// Without are the sessions that are told this by an instance of their own, "" for those without.
	Without []string
	rpc.Notification
}

// listeners are those who want to hear what the apps of a workspace say by themselves.
type listeners struct {
	mu  sync.RWMutex
	all map[string]map[*listener]struct{} // by workspace
}

type listener struct{ told func(Notification) }

func newListeners() *listeners { return &listeners{all: map[string]map[*listener]struct{}{}} }

// Listen calls told with what the workspace's apps say by themselves: log messages about no call, or
// about one of several that are all of one session (notifications/message), updates of resources
// (notifications/resources/updated), the end of elicitations (notifications/elicitation/complete), and
// changed lists of an instance that one session has to itself. told must not wait; calls for one app come in its wire order.
func (y *Manager) Listen(workspace string, told func(Notification)) (stop func()) {
	l := &listener{told}
	y.listeners.mu.Lock()
	defer y.listeners.mu.Unlock()
	if y.listeners.all[workspace] == nil {
		y.listeners.all[workspace] = map[*listener]struct{}{}
	}
	y.listeners.all[workspace][l] = struct{}{}
	return func() {
		y.listeners.mu.Lock()
		defer y.listeners.mu.Unlock()
		delete(y.listeners.all[workspace], l)
		if len(y.listeners.all[workspace]) == 0 {
			delete(y.listeners.all, workspace)
		}
	}
}

func (l *listeners) tell(workspace string, t Notification) {
	l.mu.RLock()
	told := make([]*listener, 0, len(l.all[workspace]))
	for one := range l.all[workspace] {
		told = append(told, one)
	}
	l.mu.RUnlock()
	for _, one := range told {
		one.told(t)
	}
}

// said passes on what the app's shared instance said by itself.
func (a *app) said(n rpc.Notification) {
	t := Notification{Server: a.key.name, Notification: n}
	switch n.Method {
	case "notifications/message":
		if t.Session = sessionOf(n.Callers); t.Session == "" && len(n.Callers) > 0 {
			return // it is somebody's, and nobody knows whose
		}
	case "notifications/resources/updated":
		t.Without = a.manager.annexes.sessions(a)
	case "notifications/elicitation/complete":
		if t.Session = a.manager.errands.session(a.key, n); t.Session == "" {
			return
		}
	default: // nothing a client would know
		return
	}
	a.manager.listeners.tell(a.key.workspace, t)
}

// sessionOf is the session whose all of some calls are, "" when there is no such.
func sessionOf(calls []any) (session string) {
	for i, c := range calls {
		client := c.(*caller).client
		if client == nil || i > 0 && client.session != session {
			return ""
		}
		session = client.session
	}
	return session
}
