package tools

import (
	"context"
	"encoding/json"
	"strings"
	"sync"

	"github.com/hashicorp/go-hclog"
	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps"
	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/core/apps/notify"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/tools/schema"
)

// Apps is what the namespace needs of the installed apps; apps.Manager implements it.
type Apps interface {
	// Offer returns the lists of the workspace's apps, by server name and then in each app's own order, as
	// client sees them: apps may have an instance of their own for it. nil is a client that they have none
	// for. It is immutable, and the same pointer until something changes.
	Offer(workspace string, client *interact.Client) *core.Offer
	// Instructions returns those of the workspace's running apps that give any, by server name.
	Instructions(workspace string) []core.Instructions
	// StartCall starts a call, and never waits: a call that cannot be sent at once is made by the pending
	// call's Wait.
	StartCall(ctx context.Context, workspace, server string, c interact.Call) (apps.PendingCall, error)
	// Call is StartCall and Wait.
	Call(ctx context.Context, workspace, server string, c interact.Call) (json.RawMessage, error)
	// AwaitOffer waits for an app that is starting and whose lists are not known yet.
	AwaitOffer(ctx context.Context, workspace, server string) error
	Watch(workspace string, changed func(core.Kind)) (stop func())
	Listen(workspace string, receive func(notify.Notification)) (stop func())
	Subscribe(ctx context.Context, workspace, server, session, uri string) error
	Unsubscribe(ctx context.Context, workspace, server, session, uri string) error
	SetLogLevel(ctx context.Context, workspace, level string)
	RootsChanged(ctx context.Context, session string)
	EndSession(session string)
}

// Publisher publishes events without waiting.
type Publisher interface{ Publish(core.Event) }

// Metrics measures the calls.
type Metrics interface {
	// ToolCall records a call. app and tool are "" when there is none of the name that the caller gave;
	// failed is whether the result says that the tool failed.
	ToolCall(app, tool string, failed bool, err error)
}

// Features reports whether a feature flag is on.
type Features interface{ Enabled(flag string) bool }

// Options are the parts of a Namespace.
type Options struct {
	Apps     Apps
	Events   Publisher
	Features Features
	Logger   hclog.Logger
	Audit    Auditor // nil records nothing

	Approvals Approvals // nil lets no call wait for a person
	Metrics   Metrics   // nil measures nothing
}

// Namespace lists and calls what the apps of workspaces offer. It is safe for concurrent use.
type Namespace struct {
	apps      Apps
	events    Publisher
	features  Features
	audit     Auditor
	approvals Approvals
	metrics   Metrics
	system    []System
	own       []Listed // system as it is listed
	validator *schema.Validator
	log       hclog.Logger

	stateless *interact.Client // every client without a session
	sessions  *sessionRegistry

	links *lru.Cache[string, resourceRef] // that apps gave to stateless clients

	mu              sync.RWMutex
	merged          map[string]*mergedLists // by workspace
	mergedStateless map[string]*mergedLists // the same for stateless clients, where theirs differ
}

// New returns a Namespace over the given apps and system tools.
func New(o Options) *Namespace {
	return &Namespace{
		apps: o.Apps, events: o.Events, features: o.Features, log: o.Logger, audit: o.Audit, approvals: o.Approvals, metrics: o.Metrics,
		validator: schema.New(), merged: map[string]*mergedLists{}, mergedStateless: map[string]*mergedLists{}, links: newLinks(maxStatelessLinks),
		stateless: interact.NewClient("", true, nil), sessions: newSessionRegistry(),
	}
}

// Bits of a mask above those of the service's own tools: the discovery flags that are on.
const (
	maskToolDiscovery uint64 = 1 << (62 + iota)
	maskBundleDiscovery
)

// Add adds the service's own tools, 62 at most, which are listed in this order. Call it before the
// first List or Call.
func (n *Namespace) Add(own ...System) {
	n.system = append(n.system, own...)
	for _, s := range own {
		n.own = append(n.own, s.listed())
	}
}

// Listed is one tool as a caller sees it: with its full name, otherwise as its app wrote it.
type Listed struct {
	Name string
	Tool core.Tool
	Raw  json.RawMessage
}

// List returns the tools that c sees in a stable order: by server name, then in each app's own order. The
// service's own tools are sorted as those of a server named system.
func (n *Namespace) List(c core.Caller) []Listed { return n.ListFor(c, From{}) }

// ListFor is List for a request from a client, whose session may have lists of its own.
func (n *Namespace) ListFor(c core.Caller, from From) []Listed {
	return n.list(n.lists(c.Workspace.ID, from), n.mask(c))
}

// list returns the tools of apps and those of the service that mask has a bit for.
func (n *Namespace) list(r *mergedLists, mask uint64) []Listed {
	at := 0
	for at < len(r.tools) && r.tools[at].Tool.Server < systemServer {
		at++
	}
	all := make([]Listed, 0, len(r.tools)+len(n.own))
	all = append(all, r.tools[:at]...)
	for i, own := range n.own {
		if mask>>i&1 == 0 {
			continue
		}
		if s := n.system[i]; s.ListedSchema != nil {
			s.Schema = s.ListedSchema(mask&maskToolDiscovery != 0, mask&maskBundleDiscovery != 0)
			own = s.listed()
		}
		all = append(all, own)
	}
	return append(all, r.tools[at:]...)
}

// mask returns a bit for each of the service's own tools that c may use, and for each discovery flag that is on.
func (n *Namespace) mask(c core.Caller) (mask uint64) {
	if n.features.Enabled(config.FlagToolDiscovery) {
		mask |= maskToolDiscovery
	}
	if n.features.Enabled(config.FlagBundleDiscovery) {
		mask |= maskBundleDiscovery
	}
	for i, s := range n.system {
		if n.anyEnabled(s.Flags) && (!s.AdminOnly || c.User.OrgRole.Admin()) {
			mask |= 1 << i
		}
	}
	return mask
}

// Watch calls changed, which must not block, when the tools of a workspace's apps changed.
func (n *Namespace) Watch(workspace string, changed func()) (stop func()) {
	return n.apps.Watch(workspace, func(kind core.Kind) {
		if kind == core.KindTools {
			changed()
		}
	})
}

// WatchLists calls changed, which must not block, when a list of a workspace's apps changed. Resources and
// templates are separate kinds, though MCP has one notification for both.
func (n *Namespace) WatchLists(workspace string, changed func(core.Kind)) (stop func()) {
	return n.apps.Watch(workspace, changed)
}

// allowed applies the feature flag first, then the role (docs/api.md 4.6).
func (n *Namespace) allowed(s System, c core.Caller) error {
	if !n.anyEnabled(s.Flags) {
		return core.Errorf(core.CodeFeatureDisabled, "%s is off: the feature flag %s is false", s.FullName(), strings.Join(s.Flags, " or "))
	}
	if s.AdminOnly && !c.User.OrgRole.Admin() {
		return core.Errorf(core.CodeForbidden, "%s needs the organization role admin or owner", s.FullName())
	}
	return nil
}

// anyEnabled reports whether one of the flags is on, or there is none.
func (n *Namespace) anyEnabled(flags []string) bool {
	if len(flags) == 0 {
		return true
	}
	for _, f := range flags {
		if n.features.Enabled(f) {
			return true
		}
	}
	return false
}

// CheckForm checks the fields that a person filled in against the schema that an app sent:
// core.CodeInvalidInput with every violation in its details.
func (n *Namespace) CheckForm(form, content json.RawMessage) error {
	return n.validator.CheckForm(form, content)
}
