package notify

import (
	"sync"

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

// Listeners are those who receive the notifications of a workspace's apps.
type Listeners struct {
	mu  sync.RWMutex
	all map[string]map[*listener]struct{} // by workspace
}

type listener struct{ receive func(Notification) }

// NewListeners returns Listeners without anyone.
func NewListeners() *Listeners { return &Listeners{all: map[string]map[*listener]struct{}{}} }

// Listen calls receive with each notification of the workspace's apps. receive must not wait.
func (l *Listeners) Listen(workspace string, receive func(Notification)) (stop func()) {
	one := &listener{receive}
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

// Publish calls everyone who listens in the workspace.
func (l *Listeners) Publish(workspace string, n Notification) {
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
