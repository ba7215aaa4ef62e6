package tools

import (
	"cmp"
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps"
	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/tools/schema"
	"github.com/ropewalk/ropewalk/core/tools/view"
	"github.com/ropewalk/ropewalk/core/trust"
)

// Apps is the part of apps.Manager that the namespace needs.
type Apps interface {
	// Offer returns the lists of the workspace's apps, by server name and then in each app's own order, as client
	// sees them: an app may have a separate instance for it. For a nil client, these are the lists of the shared
	// instances. The offer is immutable, and the same pointer until something changes.
	Offer(workspace string, client *interact.Client) *core.Offer
	// Instructions returns the instructions of the workspace's running apps that have any, by server name.
	Instructions(workspace string) []core.Instructions
	// Skilled returns the workspace's running apps that serve skills, by server name.
	Skilled(workspace string) []string
	// Missing returns the workspace's apps that should run but whose tools are not known, by server name.
	Missing(workspace string) []core.MissingApp
	Call(ctx context.Context, workspace, server string, c *interact.Call) (json.RawMessage, error)
	// Resource reads a resource for a user's browser. c has the Sender, the Account and Recheck.
	Resource(ctx context.Context, workspace, server, uri string, c *interact.Call) (apps.Resource, error)
	// AwaitOffer waits for an app that is starting and whose lists are not known yet.
	AwaitOffer(ctx context.Context, workspace, server string) error
	Watch(workspace string, changed func(core.Kind)) (stop func())
	Listen(workspace string, receive func(apps.Notification)) (stop func())
	Subscribe(ctx context.Context, workspace, server, session, user, uri string) error
	Unsubscribe(ctx context.Context, workspace, server, session, user, uri string) error
	SetLogLevel(ctx context.Context, workspace, level string)
	RootsChanged(ctx context.Context, session string)
	EndSession(session string)
}

// Publisher publishes events without blocking.
type Publisher interface{ Publish(core.Event) }

// Metrics records calls.
type Metrics interface {
	// ToolCall records a call. app and tool are "" if there is no tool with the name that the caller used. failed
	// reports whether the result says that the tool failed.
	ToolCall(app, tool string, failed bool, err error)
}

// Access reads the rights of callers. *access.Access implements it.
type Access interface {
	// Current returns an earlier caller with the rights that it has now, or an error if it no longer has access.
	Current(ctx context.Context, c core.Caller) (core.Caller, error)
}

// Features reports whether a feature flag is on.
type Features interface{ Enabled(flag string) bool }

// Options configures a Namespace.
type Options struct {
	Apps     Apps
	Events   Publisher
	Features Features
	Logger   hclog.Logger
	Audit    Auditor // nil records nothing

	Access    Access           // nil if the rights of callers never change
	Accounts  Accounts         // nil if apps do not use accounts
	Approvals *trust.Approvals // nil if no call needs an approval
	Metrics   Metrics          // nil records nothing
	Views     *view.Registry   // nil shows everything to everyone
	Results   Results          // nil does not store long results
	Skills    Skills           // nil if workspaces do not have their own skills
	Tasks     Tasks            // nil if no call becomes a task

	ResultBudget int // maximum tokens of a result's text; the caller gets an excerpt of a longer one; 0 means 12,500

	TaskAfter time.Duration // how long a call takes before it becomes a task; 0 means 5 s
	TaskLease time.Duration // how long a server holds its tasks without renewing its claim; 0 means 20 s

	Surface    string            // for clients that do not choose; "" means full
	Surfaces   map[string]string // by workspace, where it differs from Surface
	Budget     int               // SurfaceSearch lists all tools if they take at most this many tokens; 0 means never
	Favourites []string          // tools that SurfaceSearch always lists: full names, in which * matches any text
}

// Namespace lists and calls the tools, prompts and resources of workspaces. It is safe for concurrent use.
type Namespace struct {
	o          Options
	favourites *regexp.Regexp // nil for none
	tasks      *taskRuns
	system     []System
	own        []Listed // system as it is listed
	validator  *schema.Validator

	stateless *interact.Client // represents all clients without a session
	sessions  *sessionRegistry

	links *lru.Cache[string, *lru.Cache[string, resourceRef]] // links that apps gave to stateless clients, by User.ID

	leftOut *lru.Cache[leftOutSkills, struct{}] // the left-out skills that have been logged

	mu       sync.RWMutex
	merged   map[listsKey]*mergedLists
	separate *lru.Cache[ownListsKey, *mergedLists] // lists that differ from the workspace's: those of people with accounts, of sessions and of stateless clients
}

// New returns a Namespace. Add adds the server's own tools.
func New(o Options) *Namespace {
	o.ResultBudget = cmp.Or(o.ResultBudget, resultBudgetDefault)
	n := &Namespace{
		o: o, favourites: core.NamePattern(o.Favourites), tasks: newTaskRuns(o), validator: schema.New(),
		stateless: interact.NewClient("", true, nil), sessions: newSessionRegistry(), merged: map[listsKey]*mergedLists{},
	}
	n.separate, _ = lru.New[ownListsKey, *mergedLists](maxOwnLists) // the only error is a size below 1
	n.leftOut, _ = lru.New[leftOutSkills, struct{}](maxLeftOutSkills)
	n.links, _ = lru.New[string, *lru.Cache[string, resourceRef]](maxLinkUsers)
	if n.o.Views != nil {
		n.o.Views.Watch(n.forgetViews)
	}
	return n
}

// Bits of a mask above the bits of the server's own tools: whether the client reads the rest of long results, and which
// discovery flags are on.
const (
	maskReadsOn uint64 = 1 << (61 + iota)
	maskToolDiscovery
	maskBundleDiscovery
)

// current returns a caller whose call has waited, with the rights that it has now.
func (n *Namespace) current(ctx context.Context, c core.Caller) (core.Caller, error) {
	if n.o.Access == nil {
		return c, nil
	}
	return n.o.Access.Current(ctx, c)
}

// Add adds the server's own tools, 61 at most, which are listed in this order. Call it before the first List or Call.
func (n *Namespace) Add(own ...System) {
	n.system = append(n.system, own...)
	for _, s := range own {
		n.own = append(n.own, s.listed())
	}
}

// Listed is one tool as a caller sees it: with its listed name, but otherwise as its app wrote it.
type Listed struct {
	Name string
	Tool core.Tool
	Raw  json.RawMessage // in the form of MCP 2026-07-28

	session json.RawMessage // in the form of the revisions with sessions; nil if it is the same as Raw
}

// BareName returns the listed name without the app's prefix: the tool's own name, unless a view renames it.
func (t Listed) BareName() string {
	if t.Name == t.Tool.FullName() {
		return t.Tool.Name
	}
	return strings.TrimPrefix(t.Name, t.Tool.Server+"__")
}

// RawFor returns the definition in the form of the client's MCP revision.
func (t Listed) RawFor(from From) json.RawMessage {
	if t.session == nil || from.Stateless {
		return t.Raw
	}
	return t.session
}

// List returns the tools that c sees in a stable order: by server name, then in each app's own order. The server's
// own tools are sorted like those of an app named system.
func (n *Namespace) List(c core.Caller) []Listed { return n.ListFor(c, From{}) }

// ListFor is like List, for a request from a client, whose session may have different lists.
func (n *Namespace) ListFor(c core.Caller, from From) []Listed {
	n.seen(c)
	r, mask := n.lists(c, from), n.maskFor(c, from)
	return n.list(r, mask, n.searches(r, mask, from))
}

// seen records that c lists tools, because some apps are published only once somebody lists tools.
func (n *Namespace) seen(c core.Caller) {
	if n.o.Accounts != nil {
		n.o.Accounts.PublishExchangeApps(c)
	}
}

// list returns the tools of apps and those of the server's own tools whose bit is set in mask. If search is true, it
// returns the tools that find and call the others, and the favourites.
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

// ownListed returns one of the server's own tools as a caller with that mask sees it.
func (n *Namespace) ownListed(i int, own Listed, mask uint64) Listed {
	s := n.system[i]
	if s.ListedSchema == nil {
		return own
	}
	s.Schema = s.ListedSchema(mask&maskToolDiscovery != 0, mask&maskBundleDiscovery != 0)
	return s.listed()
}

// maskFor is like mask, for a request from a client.
func (n *Namespace) maskFor(c core.Caller, from From) uint64 {
	mask := n.mask(c)
	if from.ShortResults {
		mask |= maskReadsOn
	}
	return mask
}

// mask returns a bit for each of the server's own tools that c may use, and for each discovery flag that is on.
func (n *Namespace) mask(c core.Caller) (mask uint64) {
	if n.o.Features.Enabled(config.FlagToolDiscovery) {
		mask |= maskToolDiscovery
	}
	if n.o.Features.Enabled(config.FlagBundleDiscovery) {
		mask |= maskBundleDiscovery
	}
	views := n.viewsOf(c)
	for i, s := range n.system {
		if s.Enabled(n.o.Features.Enabled) && s.Permits(c) && (s.Shown == nil || s.Shown(c)) && (views == nil || n.showsSystem(views, i)) {
			mask |= 1 << i
		}
	}
	return mask
}

// Watch calls changed, which must not block, whenever the tools of a workspace's apps have changed.
func (n *Namespace) Watch(workspace string, changed func()) (stop func()) {
	return n.o.Apps.Watch(workspace, func(kind core.Kind) {
		if kind == core.KindTools {
			changed()
		}
	})
}

// WatchLists calls changed, which must not block, whenever a list of a workspace's apps has changed. Resources and
// templates are separate kinds, although MCP has one notification for both.
func (n *Namespace) WatchLists(workspace string, changed func(core.Kind)) (stop func()) {
	return n.o.Apps.Watch(workspace, changed)
}

// CheckForm checks the fields that a person filled in against the schema that an app sent. The error is
// core.CodeInvalidInput with every violation in its details.
func (n *Namespace) CheckForm(form, content json.RawMessage) error {
	return n.validator.CheckForm(form, content)
}

// Instructions returns the instructions of each running app that offers c at least one tool, prompt or resource, by
// server name. Hidden characters are replaced with their code points, as in descriptions. An app with held tools is
// left out: its instructions may have changed together with the tools.
func (n *Namespace) Instructions(c core.Caller) []core.Instructions {
	all := n.o.Apps.Instructions(c.Workspace.ID)
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

// offers reports whether an offer contains anything from an app, with none of that app's tools held.
func offers(o *core.Offer, server string) bool {
	if slices.ContainsFunc(o.Held, func(t core.HeldTool) bool { return t.Server == server }) {
		return false
	}
	return slices.ContainsFunc(o.Tools, func(t core.Tool) bool { return t.Server == server }) ||
		slices.ContainsFunc(o.Prompts, func(p core.Prompt) bool { return p.Server == server }) ||
		slices.ContainsFunc(o.Resources, func(r core.Resource) bool { return r.Server == server }) ||
		slices.ContainsFunc(o.Templates, func(t core.ResourceTemplate) bool { return t.Server == server })
}
