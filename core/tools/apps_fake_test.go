package tools_test

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/internal/testkit/fakeapps"
)

// fakeApps holds the apps of a few workspaces in memory. Every call returns the same result.
type fakeApps struct {
	fakeapps.Apps
	tools  map[string][]core.Tool // by workspace
	late   map[string][]core.Tool // by server; the tools of apps that are still starting
	result string
	err    error
	waking func() // called by each call, as if its app were asleep; nil if all are awake

	mu sync.Mutex
}

func (f *fakeApps) Offer(workspace string, client *interact.Client) *core.Offer {
	f.mu.Lock()
	defer f.mu.Unlock()
	if listed := f.tools[workspace]; listed != nil {
		f.SetOffer(workspace, &core.Offer{Tools: listed})
		f.tools[workspace] = nil
	}
	return f.Apps.Offer(workspace, client)
}

func (f *fakeApps) AwaitOffer(_ context.Context, workspace, server string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	late, starting := f.late[server]
	switch {
	case !starting:
		return nil
	case late == nil:
		return core.Errorf(core.CodeUnavailable, "app %q is starting", server)
	}
	delete(f.late, server)
	f.SetOffer(workspace, &core.Offer{Tools: late})
	return nil
}

func (f *fakeApps) Call(ctx context.Context, workspace, server string, c *interact.Call) (json.RawMessage, error) {
	if f.waking != nil {
		f.waking()
		if err := c.Recheck(ctx); err != nil {
			return nil, err
		}
	}
	if _, err := f.Apps.Call(ctx, workspace, server, c); err != nil {
		return nil, err
	}
	return json.RawMessage(f.result), f.err
}

// asked returns the calls that reached an app, one line each.
func (f *fakeApps) asked() []string {
	var all []string
	for _, c := range f.Calls() {
		all = append(all, c.String())
	}
	return all
}
