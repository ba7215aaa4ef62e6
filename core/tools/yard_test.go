package tools_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps"
)

// yard is the apps of two workspaces in memory.
type yard struct {
	tools map[string][]core.Tool
	late  map[string][]core.Tool // by server

	mu     sync.Mutex
	offers map[string]*core.Offer
	calls  []apps.Call
	heard  map[string][]func(apps.Notification)
	told   []string // what it was asked besides calls
	params []string
	result string
	err    error
}

func (y *yard) Offer(workspace string) *core.Offer {
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.offers == nil {
		y.offers = map[string]*core.Offer{}
	}
	if y.offers[workspace] == nil {
		y.offers[workspace] = &core.Offer{Tools: y.tools[workspace]}
	}
	return y.offers[workspace]
}

func (y *yard) Watch(string, func(core.Kind)) func() { return func() {} }

// Arrives brings the tools of apps that have yet to come.
func (y *yard) Arrives(_ context.Context, workspace, server string) (bool, error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	late, comes := y.late[server]
	switch {
	case !comes:
		return false, nil
	case late == nil:
		return false, core.Errorf(core.CodeUnavailable, "it is starting still")
	}
	delete(y.late, server)
	y.offers[workspace] = &core.Offer{Tools: late}
	return true, nil
}

// Send begins nothing: every call is Call's.
func (*yard) Send(context.Context, string, string, apps.Call, chan struct{}) (*apps.Pending, error) {
	return nil, nil
}

func (y *yard) Call(_ context.Context, workspace, server string, c apps.Call) (json.RawMessage, error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.params = append(y.params, fmt.Sprintf("%s %s %s %s", workspace, server, c.Method, c.Params))
	y.calls = append(y.calls, c)
	return json.RawMessage(y.result), y.err
}

func (y *yard) Listen(workspace string, told func(apps.Notification)) func() {
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.heard == nil {
		y.heard = map[string][]func(apps.Notification){}
	}
	y.heard[workspace] = append(y.heard[workspace], told)
	return func() { y.note("no listener in %s", workspace) }
}

// say has an app of a workspace say something by itself.
func (y *yard) say(workspace string, t apps.Notification) {
	for _, told := range y.heard[workspace] {
		told(t)
	}
}

func (y *yard) note(format string, args ...any) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.told = append(y.told, fmt.Sprintf(format, args...))
}

func (y *yard) Subscribe(_ context.Context, workspace, server, session, uri string) error {
	y.note("subscribe %s %s %s %s", workspace, server, session, uri)
	return y.err
}

func (y *yard) Unsubscribe(_ context.Context, workspace, server, session, uri string) error {
	y.note("unsubscribe %s %s %s %s", workspace, server, session, uri)
	return nil
}

func (y *yard) SetLogLevel(_ context.Context, workspace, level string) {
	y.note("level %s %s", workspace, level)
}
func (y *yard) RootsChanged(_ context.Context, session string) { y.note("roots %s", session) }
func (y *yard) EndSession(session string)                      { y.note("end %s", session) }
