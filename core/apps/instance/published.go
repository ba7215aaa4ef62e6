package instance

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/link"
)

// Published stands in for a remote app that uses accounts when no account is selected. It shows the published lists and
// cannot be called.
type Published struct {
	*ListChanges
	app  string
	done chan struct{}
	end  func()

	mu    sync.Mutex
	lists core.AppLists
}

func newPublished(spec Spec) *Published {
	done := make(chan struct{})
	return &Published{
		ListChanges: NewListChanges(), app: spec.Record.Name, lists: spec.Published,
		done: done, end: sync.OnceFunc(func() { close(done) }),
	}
}

// Publish replaces the lists and announces the change.
func (p *Published) Publish(lists core.AppLists) {
	p.mu.Lock()
	p.lists = lists
	p.mu.Unlock()
	for _, kind := range []core.Kind{core.KindTools, core.KindPrompts, core.KindResources} {
		p.AddListChange(kind)
	}
}

// Call implements Instance. It returns core.CodeLoginNeeded.
func (p *Published) Call(context.Context, link.Request) (json.RawMessage, error) {
	return nil, core.Errorf(core.CodeLoginNeeded, "app %s uses a linked account, and this call has none", p.app)
}

// List implements Instance.
func (p *Published) List(_ context.Context, kind core.Kind) ([]json.RawMessage, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lists.Lists[kind], nil
}

// Subscribe implements Instance. It does nothing, because the app has no shared connection that could carry
// subscriptions.
func (p *Published) Subscribe(context.Context, string) error { return nil }

// Unsubscribe implements Instance. It does nothing.
func (p *Published) Unsubscribe(context.Context, string) error { return nil }

// Notify implements Instance. It does nothing.
func (p *Published) Notify(context.Context, string, json.RawMessage) error { return nil }

// Info implements Instance.
func (p *Published) Info() link.Info {
	p.mu.Lock()
	defer p.mu.Unlock()
	return link.Info{Name: p.app, Version: p.lists.Version, Instructions: p.lists.Instructions, Stateless: p.lists.Stateless}
}

// Done implements Instance.
func (p *Published) Done() <-chan struct{} { return p.done }

// Failure implements Instance.
func (p *Published) Failure() *Failure { return &Failure{Reason: "it was stopped"} }

// Shutdown implements Instance.
func (p *Published) Shutdown(time.Duration) error {
	p.end()
	return nil
}
