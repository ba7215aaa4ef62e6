// Package fakeapps fakes the running apps that a tool namespace calls: apps in memory that record
// requests and respond as a test specifies.
//
// It does not depend on how a namespace works. A test that needs more behavior embeds Apps and adds it.
package fakeapps

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps"
	"github.com/ropewalk/ropewalk/core/apps/interact"
)

// Call is a call that reached an app.
type Call struct {
	Workspace, Server string
	*interact.Call
}

// String returns the workspace, server, method and parameters, separated by spaces.
func (c Call) String() string {
	return fmt.Sprintf("%s %s %s %s", c.Workspace, c.Server, c.Method, c.Params)
}

// Apps contains the apps of any number of workspaces. The zero value offers nothing and answers every call with an
// empty result. It is safe for concurrent use.
type Apps struct {
	mu         sync.Mutex
	offers     map[string]*core.Offer
	texts      []core.Instructions
	skilled    []string
	missing    []core.MissingApp
	answer     func(context.Context, Call) (json.RawMessage, error)
	calls      []Call
	operations []string
	subscribed map[string]int // by URI
	listeners  map[int]listener
	next       int
}

type listener struct {
	workspace string
	notify    func(apps.Notification)
}

// SetOffer sets what the apps of a workspace offer; "" is every workspace without its own offer.
func (a *Apps) SetOffer(workspace string, o *core.Offer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.offers == nil {
		a.offers = map[string]*core.Offer{}
	}
	a.offers[workspace] = o
}

// SetInstructions sets the instructions of the apps of every workspace.
func (a *Apps) SetInstructions(all ...core.Instructions) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.texts = all
}

// SetSkilled sets the apps of every workspace that serve skills.
func (a *Apps) SetSkilled(servers ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.skilled = servers
}

// SetMissing sets the apps of every workspace whose tools are not known.
func (a *Apps) SetMissing(apps ...core.MissingApp) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.missing = apps
}

// Missing returns what SetMissing set.
func (a *Apps) Missing(string) []core.MissingApp {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.missing)
}

// Skilled returns what SetSkilled set.
func (a *Apps) Skilled(string) []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.skilled
}

// Instructions returns what SetInstructions set.
func (a *Apps) Instructions(string) []core.Instructions {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.texts
}

// Answer sets the function that answers every call from now on.
func (a *Apps) Answer(f func(context.Context, Call) (json.RawMessage, error)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answer = f
}

// Calls returns the calls that have arrived, in order.
func (a *Apps) Calls() []Call {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.calls)
}

// Operations returns the requests other than calls, one line each: the name of the operation and its arguments,
// such as "subscribe ws_a clock s1 demo://a".
func (a *Apps) Operations() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.operations)
}

// Subscriptions returns how many subscriptions a URI currently has.
func (a *Apps) Subscriptions(uri string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.subscribed[uri]
}

// Notify sends a notification from an app to everyone who listens to a workspace.
func (a *Apps) Notify(workspace string, n apps.Notification) {
	a.mu.Lock()
	var all []func(apps.Notification)
	for _, l := range a.listeners {
		if l.workspace == workspace || workspace == "" {
			all = append(all, l.notify)
		}
	}
	a.mu.Unlock()
	for _, notify := range all {
		notify(n)
	}
}

// Offer returns what SetOffer set, to every client.
func (a *Apps) Offer(workspace string, _ *interact.Client) *core.Offer {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, w := range []string{workspace, ""} {
		if o := a.offers[w]; o != nil {
			return o
		}
	}
	if a.offers == nil {
		a.offers = map[string]*core.Offer{}
	}
	a.offers[workspace] = &core.Offer{}
	return a.offers[workspace]
}

// Resource always fails.
func (*Apps) Resource(_ context.Context, _, _, uri string, _ *interact.Call) (apps.Resource, error) {
	return apps.Resource{}, core.Errorf(core.CodeResourceNotFound, "there is no resource %q", uri)
}

// Call records the call and answers it.
func (a *Apps) Call(ctx context.Context, workspace, server string, c *interact.Call) (json.RawMessage, error) {
	call := Call{Workspace: workspace, Server: server, Call: c}
	a.mu.Lock()
	a.calls = append(a.calls, call)
	answer := a.answer
	a.mu.Unlock()
	if answer == nil {
		return json.RawMessage(`{}`), nil
	}
	return answer(ctx, call)
}

// AwaitOffer reports that no app is starting.
func (*Apps) AwaitOffer(context.Context, string, string) error { return nil }

// Watch never reports a change.
func (*Apps) Watch(string, func(core.Kind)) func() { return func() {} }

// Listen delivers what Notify sends.
func (a *Apps) Listen(workspace string, notify func(apps.Notification)) func() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.listeners == nil {
		a.listeners = map[int]listener{}
	}
	a.next++
	id := a.next
	a.listeners[id] = listener{workspace, notify}
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.listeners, id)
		a.operations = append(a.operations, "no listener in "+workspace)
	}
}

// Subscribe records the subscription.
func (a *Apps) Subscribe(_ context.Context, workspace, server, session, _, uri string) error {
	a.count(uri, 1)
	a.record("subscribe", workspace, server, session, uri)
	return nil
}

// Unsubscribe records the end of a subscription.
func (a *Apps) Unsubscribe(_ context.Context, workspace, server, session, _, uri string) error {
	a.count(uri, -1)
	a.record("unsubscribe", workspace, server, session, uri)
	return nil
}

// SetLogLevel records the level.
func (a *Apps) SetLogLevel(_ context.Context, workspace, level string) {
	a.record("level", workspace, level)
}

// RootsChanged records the session.
func (a *Apps) RootsChanged(_ context.Context, session string) { a.record("roots", session) }

// EndSession records the session.
func (a *Apps) EndSession(session string) { a.record("end", session) }

func (a *Apps) count(uri string, by int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.subscribed == nil {
		a.subscribed = map[string]int{}
	}
	a.subscribed[uri] += by
}

func (a *Apps) record(operation string, arguments ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, argument := range arguments {
		operation += " " + argument
	}
	a.operations = append(a.operations, operation)
}
