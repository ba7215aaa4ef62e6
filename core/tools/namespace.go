package tools

import (
	"cmp"
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/go-hclog"
	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps"
	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/tools/schema"
	"github.com/ropewalk/ropewalk/core/trust"
)

// Apps is what the namespace needs of the installed apps; apps.Manager implements it.
type Apps interface {
	// Offer returns the lists of the workspace's apps, by server name and then in each app's own order, as
	// client sees them: apps may have an instance of their own for it. nil is a client that they have none
	// for. It is immutable, and the same pointer until something changes.
	Offer(workspace string, client *interact.Client) *core.Offer
	// Instructions returns those of the workspace's running apps that give any, by server name.
	Instructions(workspace string) []core.Instructions
	Call(ctx context.Context, workspace, server string, c interact.Call) (json.RawMessage, error)
	// Resource reads a resource for a browser, with an account; "" for none.
	Resource(ctx context.Context, workspace, server, uri, account string) (apps.Resource, error)
	// AwaitOffer waits for an app that is starting and whose lists are not known yet.
	AwaitOffer(ctx context.Context, workspace, server string) error
	Watch(workspace string, changed func(core.Kind)) (stop func())
	Listen(workspace string, receive func(apps.Notification)) (stop func())
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

	Accounts  Accounts  // nil for apps without accounts
	Approvals Approvals // nil lets no call wait for a person
	Metrics   Metrics   // nil measures nothing
	Views     Views     // nil shows everything to everybody
	Results   Results   // nil keeps no result that is too long for its caller

	ResultBudget int // tokens of a result's text above which it is kept, and its caller gets an excerpt; 0 for 12,500

	Budget     int      // tokens of a list up to which SurfaceSearch lists all tools; 0 for none
	Favourites []string // tools that SurfaceSearch lists as well: full names, in which * matches any text
}

// Namespace lists and calls what the apps of workspaces offer. It is safe for concurrent use.
type Namespace struct {
	apps      Apps
	events    Publisher
	features  Features
	audit     Auditor
	accounts  Accounts
	approvals Approvals
	metrics   Metrics
	views     Views
	results   Results
	system    []System
	own       []Listed // system as it is listed
	validator *schema.Validator
	log       hclog.Logger

	budget       int
	resultBudget int
	favourites   *regexp.Regexp // nil for none

	stateless *interact.Client // every client without a session
	sessions  *sessionRegistry

	links *lru.Cache[string, resourceRef] // that apps gave to stateless clients

	mu              sync.RWMutex
	merged          map[listsKey]*mergedLists
	mergedStateless map[listsKey]*mergedLists // the same for stateless clients, where theirs differ
}

// New returns a Namespace over the given apps and system tools.
func New(o Options) *Namespace {
	n := &Namespace{
		budget: o.Budget, favourites: trust.NamePattern(o.Favourites), apps: o.Apps, events: o.Events, features: o.Features, log: o.Logger, audit: o.Audit, accounts: o.Accounts, approvals: o.Approvals, metrics: o.Metrics, views: o.Views, results: o.Results, resultBudget: cmp.Or(o.ResultBudget, resultBudgetDefault),
		validator: schema.New(), merged: map[listsKey]*mergedLists{}, mergedStateless: map[listsKey]*mergedLists{}, links: newLinks(maxStatelessLinks),
		stateless: interact.NewClient("", true, nil), sessions: newSessionRegistry(),
	}
	if n.views != nil {
		n.views.Watch(n.forgetViews)
	}
	return n
}

// Bits of a mask above those of the service's own tools: whether the client reads on in results, and the discovery flags
// that are on.
const (
	maskReadsOn uint64 = 1 << (61 + iota)
	maskToolDiscovery
	maskBundleDiscovery
)

// Add adds the service's own tools, 61 at most, which are listed in this order. Call it before the
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
	Raw  json.RawMessage // as MCP 2026-07-28 defines it

	session json.RawMessage // as the revisions with sessions define it; nil when that is Raw
}

// BareName is the listed name without the app's: the tool's own, unless a view renames it.
func (t Listed) BareName() string {
	if t.Name == t.Tool.FullName() {
		return t.Tool.Name
	}
	return strings.TrimPrefix(t.Name, t.Tool.Server+"__")
}

// RawFor is the tool as the revision of a client defines it.
func (t Listed) RawFor(from From) json.RawMessage {
	if t.session == nil || from.Stateless {
		return t.Raw
	}
	return t.session
}

// List returns the tools that c sees in a stable order: by server name, then in each app's own order. The
// service's own tools are sorted as those of a server named system.
func (n *Namespace) List(c core.Caller) []Listed { return n.ListFor(c, From{}) }

// ListFor is List for a request from a client, whose session may have lists of its own.
func (n *Namespace) ListFor(c core.Caller, from From) []Listed {
	r, mask := n.lists(c, from), n.maskFor(c, from)
	return n.list(r, mask, n.searches(r, mask, from))
}

// list returns the tools of apps and those of the service that mask has a bit for. With search it returns those with
// which the others are found and called, and the favourites.
func (n *Namespace) list(r *mergedLists, mask uint64, search bool) []Listed {
	if search {
		return n.searchList(r, mask)
	}
	at := 0
	for at < len(r.tools) && r.tools[at].Tool.Server < SystemServer {
		at++
	}
	all := make([]Listed, 0, len(r.tools)+len(n.own))
	all = append(all, r.tools[:at]...)
	for i, own := range n.own {
		if mask>>i&1 == 0 || !n.system[i].isListed(mask, false) {
			continue
		}
		all = append(all, n.ownListed(i, own, mask))
	}
	return append(all, r.tools[at:]...)
}

// ownListed is one of the service's own tools as a caller with that mask sees it.
func (n *Namespace) ownListed(i int, own Listed, mask uint64) Listed {
	s := n.system[i]
	if s.ListedSchema == nil {
		return own
	}
	s.Schema = s.ListedSchema(mask&maskToolDiscovery != 0, mask&maskBundleDiscovery != 0)
	return s.listed()
}

// maskFor is mask for a request from a client.
func (n *Namespace) maskFor(c core.Caller, from From) uint64 {
	mask := n.mask(c)
	if from.ReadsOn {
		mask |= maskReadsOn
	}
	return mask
}

// mask returns a bit for each of the service's own tools that c may use, and for each discovery flag that is on.
func (n *Namespace) mask(c core.Caller) (mask uint64) {
	if n.features.Enabled(config.FlagToolDiscovery) {
		mask |= maskToolDiscovery
	}
	if n.features.Enabled(config.FlagBundleDiscovery) {
		mask |= maskBundleDiscovery
	}
	views := n.viewsOf(c)
	for i, s := range n.system {
		if s.Enabled(n.features.Enabled) && s.Permits(c) && (s.Shown == nil || s.Shown(c)) && (views == nil || n.showsSystem(views, i)) {
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

// CheckForm checks the fields that a person filled in against the schema that an app sent:
// core.CodeInvalidInput with every violation in its details.
func (n *Namespace) CheckForm(form, content json.RawMessage) error {
	return n.validator.CheckForm(form, content)
}

// Instructions returns the instructions of the running apps of which c sees a tool, a prompt or a resource,
// by server name. Characters that people do not see are written as in descriptions. An app with tools that
// are held back is left out: what it states about itself may have changed with them.
func (n *Namespace) Instructions(c core.Caller) []core.Instructions {
	all := n.apps.Instructions(c.Workspace.ID)
	if len(all) == 0 {
		return nil
	}
	offer := n.lists(c, From{}).shown.Offer
	var seen []core.Instructions
	for _, one := range all {
		if !offers(offer, one.Server) {
			continue
		}
		if text := strings.TrimSpace(showHidden(one.Text)); text != "" {
			seen = append(seen, core.Instructions{Server: one.Server, Text: text})
		}
	}
	return seen
}

// offers reports whether callers see something of an app, and all of its tools.
func offers(o *core.Offer, server string) bool {
	if slices.ContainsFunc(o.Held, func(t core.HeldTool) bool { return t.Server == server }) {
		return false
	}
	return slices.ContainsFunc(o.Tools, func(t core.Tool) bool { return t.Server == server }) ||
		slices.ContainsFunc(o.Prompts, func(p core.Prompt) bool { return p.Server == server }) ||
		slices.ContainsFunc(o.Resources, func(r core.Resource) bool { return r.Server == server }) ||
		slices.ContainsFunc(o.Templates, func(t core.ResourceTemplate) bool { return t.Server == server })
}
