package tools

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"unsafe"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/link"
)

// Apps is what the namespace needs of the yard of running apps.
type Apps interface {
	// Tools is the workspace's tools, by server name and then in the app's own order. The slice
	// is immutable, and the same one until something changed.
	Tools(workspace string) []core.Tool
	Call(ctx context.Context, workspace, server, method string, params json.RawMessage, notify func(link.Notification)) (json.RawMessage, error)
	Watch(workspace string, changed func()) (stop func())
}

// Publisher takes events without ever waiting.
type Publisher interface{ Publish(core.Event) }

// Features answers whether a feature flag is on.
type Features interface{ Enabled(flag string) bool }

// Options is what a Namespace is made of.
type Options struct {
	Apps     Apps
	Events   Publisher
	Features Features
	Logger   hclog.Logger
}

// Namespace lists and calls the tools of workspaces. It is safe for concurrent use.
type Namespace struct {
	apps     Apps
	events   Publisher
	features Features
	system   []System
	inputs   *inputs
	log      hclog.Logger

	mu       sync.Mutex
	rendered map[string]rendering // by workspace
}

// rendering is a snapshot of a workspace's tools under their full names.
type rendering struct {
	of     []core.Tool
	listed []Listed
	byName map[string]core.Tool
}

// New returns a Namespace over the given apps and system tools.
func New(o Options) *Namespace {
	return &Namespace{
		apps: o.Apps, events: o.Events, features: o.Features, log: o.Logger,
		inputs: newInputs(), rendered: map[string]rendering{},
	}
}

// Add adds the service's own tools, which are listed in this order. Call it before the first List
// or Call.
func (n *Namespace) Add(own ...System) { n.system = append(n.system, own...) }

// Listed is one tool as a caller sees it: under its full name, otherwise as its app wrote it.
type Listed struct {
	Name string
	Tool core.Tool
	Raw  json.RawMessage
}

// List returns the tools that c sees: the apps' by server name, among them the system's own,
// which the name `system` puts where it belongs (contract part 7, stable order).
func (n *Namespace) List(c core.Caller) []Listed {
	apps := n.render(c.Workspace.ID).listed
	own := n.visible(c)
	at := 0
	for at < len(apps) && apps[at].Tool.Server < systemServer {
		at++
	}
	all := make([]Listed, 0, len(apps)+len(own))
	all = append(all, apps[:at]...)
	all = append(all, own...)
	return append(all, apps[at:]...)
}

// Watch calls changed, which must not wait, whenever the tools of a workspace's apps changed.
func (n *Namespace) Watch(workspace string, changed func()) (stop func()) {
	return n.apps.Watch(workspace, changed)
}

func (n *Namespace) visible(c core.Caller) []Listed {
	var own []Listed
	for _, s := range n.system {
		if n.allowed(s, c) == nil {
			own = append(own, s.listed())
		}
	}
	return own
}

// allowed applies the two filters of spec 4.10 rule 4: the flag first, then the role.
func (n *Namespace) allowed(s System, c core.Caller) error {
	if len(s.Flags) > 0 && !n.anyEnabled(s.Flags) {
		return core.Errorf(core.CodeFeatureDisabled, "%s is off: the feature flag %s is false", s.FullName(), strings.Join(s.Flags, " or "))
	}
	if s.AdminOnly && !c.User.OrgRole.Admin() {
		return core.Errorf(core.CodeForbidden, "%s needs the organization role admin or owner", s.FullName())
	}
	return nil
}

func (n *Namespace) anyEnabled(flags []string) bool {
	for _, f := range flags {
		if n.features.Enabled(f) {
			return true
		}
	}
	return false
}

// render returns the workspace's tools under their full names, made anew only when the yard's
// snapshot is another one.
func (n *Namespace) render(workspace string) rendering {
	snapshot := n.apps.Tools(workspace)
	n.mu.Lock()
	defer n.mu.Unlock()
	if r, ok := n.rendered[workspace]; ok && same(r.of, snapshot) {
		return r
	}
	r := rendering{of: snapshot, listed: make([]Listed, 0, len(snapshot)), byName: make(map[string]core.Tool, len(snapshot))}
	for _, t := range snapshot {
		raw, err := renamed(t.Raw, t.FullName())
		if err != nil {
			n.log.Warn("A tool is left out: its description is not a JSON object.", "server", t.Server, "tool", t.Name, "error", err)
			continue
		}
		r.listed = append(r.listed, Listed{Name: t.FullName(), Tool: t, Raw: raw})
		r.byName[t.FullName()] = t
	}
	if len(snapshot) == 0 {
		delete(n.rendered, workspace) // an empty workspace costs no memory
		return r
	}
	n.rendered[workspace] = r
	return r
}

func same(a, b []core.Tool) bool {
	return len(a) == len(b) && unsafe.SliceData(a) == unsafe.SliceData(b)
}
