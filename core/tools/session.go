package tools

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps"
	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/core/rawjson"
	"github.com/ropewalk/ropewalk/core/rpc"
)

// maxSubscriptions limits how many resources a session can subscribe to.
const maxSubscriptions = 500

// SessionOptions describes a client that makes more than one request.
type SessionOptions struct {
	// ID is unique among all sessions of the server. An app that sends requests to its clients gets an instance for it. ""
	// is for a stateless client's stream, for which nothing is kept.
	ID           string
	Capabilities json.RawMessage // the declared client capabilities; nil for none
	// Notify receives the notifications of apps for this session: updates of resources it subscribed to, log messages at
	// the level it set, completed elicitations, changed lists. It must not block, and may still be called shortly after
	// Close.
	Notify func(rpc.Notification)
	// Accounts remembers which accounts the person chooses; nil forgets them at the end of the session.
	Accounts AccountMemory
}

// Session is the state of one client in one workspace: its subscriptions, its log level, and the instances that apps
// have for it. Close ends it.
type Session struct {
	n         *Namespace
	caller    atomic.Pointer[core.Caller] // who opened the session, with the rights of the latest Follow
	workspace string
	user      string // ID of the caller
	id        string
	client    *interact.Client
	notify    func(rpc.Notification)
	links     *lru.Cache[string, resourceRef] // links that apps gave to this client
	accounts  AccountMemory                   // the accounts that the person has chosen
	asking    chan struct{}                   // full while the person is asked to choose an account

	mu        sync.Mutex
	severity  int                    // the log level, from 1; 0 if not set
	resources map[string]resourceRef // subscribed resources, by the URI that the client used
	views     map[string]struct{}    // the apps whose views it has read
	closed    bool
}

// Open opens a session in c's workspace.
func (n *Namespace) Open(c core.Caller, o SessionOptions) *Session {
	capabilities := o.Capabilities
	if !c.MayNameRoots() {
		capabilities = capabilitiesWithoutRoots(capabilities)
	}
	s := &Session{
		n: n, workspace: c.Workspace.ID, user: c.User.ID, links: newLinks(maxLinks), id: o.ID, client: interact.NewClient(o.ID, false, capabilities),
		notify: o.Notify, resources: map[string]resourceRef{}, accounts: o.Accounts, asking: make(chan struct{}, 1),
	}
	s.caller.Store(&c)
	if s.accounts == nil {
		s.accounts = &chosenAccounts{byApp: map[string]string{}}
	}
	n.sessions.add(n.o.Apps, s)
	return s
}

// Follow updates the session to its caller's current rights. It reports whether they have changed.
func (s *Session) Follow(c core.Caller) (changed bool) {
	before := s.caller.Load()
	if before.User.OrgRole == c.User.OrgRole && before.User.Groups == c.User.Groups && before.Workspace.Role == c.Workspace.Role {
		return false
	}
	now := c // only a change allocates
	s.caller.Store(&now)
	return true
}

// Close ends the session and its subscriptions, stops the instances that apps have for it, and waits until they have
// stopped. Later calls do nothing.
func (s *Session) Close(ctx context.Context) {
	if s.end(ctx) {
		s.n.EndSession(s.id)
	}
}

// Pause is like Close, but for a session that will be opened again with the same ID: the instances that apps have for
// it are kept until they are idle.
func (s *Session) Pause(ctx context.Context) { s.end(ctx) }

// EndSession stops the instances that apps have for a session, and waits until they have stopped.
func (n *Namespace) EndSession(id string) { n.o.Apps.EndSession(id) }

func (s *Session) end(ctx context.Context) bool {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return false
	}
	s.closed = true
	resources := s.resources
	s.resources = nil
	s.mu.Unlock()
	s.n.sessions.remove(s)
	for uri, at := range resources {
		if err := s.n.o.Apps.Unsubscribe(ctx, s.workspace, at.server, s.id, s.user, at.uri); err != nil {
			s.n.o.Logger.Debug("could not unsubscribe from a resource", "server", at.server, "uri", uri, "error", err)
		}
	}
	return true
}

// Subscribe implements resources/subscribe. Notify receives updates of the resource with the URI given here. The
// errors are those of ReadResource, and core.CodeBadRequest for a URI that is too long.
func (s *Session) Subscribe(ctx context.Context, uri string) error {
	if len(uri) > maxKeptURI {
		return core.Errorf(core.CodeBadRequest, "the uri of a subscription must be at most %d bytes long", maxKeptURI)
	}
	at, _, err := s.n.find(*s.caller.Load(), From{Session: s, Stateless: s.id == ""}, uri)
	if err != nil {
		return err
	}
	s.mu.Lock()
	_, known := s.resources[uri]
	switch {
	case known || s.closed:
		s.mu.Unlock()
		return nil
	case len(s.resources) >= maxSubscriptions:
		s.mu.Unlock()
		return core.Errorf(core.CodeBadRequest, "a session can subscribe to at most %d resources; unsubscribe from some first", maxSubscriptions)
	}
	s.resources[uri] = at
	s.mu.Unlock()
	if err = s.n.o.Apps.Subscribe(ctx, s.workspace, at.server, s.id, s.user, at.uri); err != nil {
		s.removeResource(uri)
		return err
	}
	if s.isClosed() { // closed before the subscription existed
		return s.n.o.Apps.Unsubscribe(ctx, s.workspace, at.server, s.id, s.user, at.uri)
	}
	return nil
}

// Unsubscribe implements resources/unsubscribe. It does nothing if there is no subscription.
func (s *Session) Unsubscribe(ctx context.Context, uri string) error {
	at, ok := s.removeResource(uri)
	if !ok {
		return nil
	}
	return s.n.o.Apps.Unsubscribe(ctx, s.workspace, at.server, s.id, s.user, at.uri)
}

func (s *Session) removeResource(uri string) (resourceRef, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, ok := s.resources[uri]
	delete(s.resources, uri)
	return at, ok
}

// addView records that the session has read a view of an app.
func (s *Session) addView(server string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.views == nil {
		s.views = map[string]struct{}{}
	}
	s.views[server] = struct{}{}
}

func (s *Session) viewed(server string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.views[server]
	return ok
}

func (s *Session) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// SetLevel implements logging/setLevel: from now on, the session receives log messages at that level and above,
// including those that do not belong to any of its calls. The error is core.CodeBadRequest for a level that MCP does
// not define.
func (s *Session) SetLevel(ctx context.Context, level string) error {
	severity := severityOf(level)
	if severity == 0 {
		return core.Errorf(core.CodeBadRequest, "level is %.50q; it must be one of %s", level, strings.Join(apps.LevelNames(), ", "))
	}
	s.mu.Lock()
	s.severity = severity
	s.mu.Unlock()
	s.n.o.Apps.SetLogLevel(ctx, s.workspace, s.n.sessions.level(s.workspace))
	return nil
}

// RootsChanged forwards notifications/roots/list_changed to the apps that asked this client for roots.
func (s *Session) RootsChanged(ctx context.Context) { s.n.o.Apps.RootsChanged(ctx, s.id) }

func (s *Session) level() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.severity
}

// deliver passes on a notification from an app if it is for this session.
func (s *Session) deliver(t apps.Notification) {
	if (t.Session != "" || t.FromPool) && t.Session != s.id || slices.Contains(t.Except, s.id) {
		return
	}
	if caller := *s.caller.Load(); t.Server != "" && s.n.Narrowed(caller) && !s.n.lists(caller, From{Session: s, Stateless: s.id == ""}).shown.ShowsApp(t.Server) {
		return
	}
	switch t.Method {
	case "notifications/message":
		if level := s.level(); level == 0 || severityOf(messageLevel(t.Params)) < level {
			return
		}
	case "notifications/resources/updated":
		s.deliverUpdate(t)
		return
	}
	s.notify(t.Notification)
}

// deliverUpdate passes on the update of a resource, or of a part of it, with the URI that the client subscribed to.
func (s *Session) deliverUpdate(t apps.Notification) {
	uri, err := text(t.Params, "uri")
	if err != nil {
		return
	}
	var names []string
	s.mu.Lock()
	for name, at := range s.resources {
		part, ok := strings.CutPrefix(uri, at.uri)
		if at.server == t.Server && ok && (part == "" || strings.ContainsRune("/#?", rune(part[0]))) {
			names = append(names, name+part)
		}
	}
	s.mu.Unlock()
	for _, name := range names {
		params, err := rawjson.Rename(t.Params, "uri", name)
		if err == nil {
			s.notify(rpc.Notification{Method: t.Method, Params: params})
		}
	}
}

// severityOf returns the rank of a level, from 1 for the lowest; 0 for an unknown level.
func severityOf(level string) int { return slices.Index(apps.LevelNames(), level) + 1 }

func messageLevel(params json.RawMessage) string {
	level, err := text(params, "level")
	if err != nil {
		return ""
	}
	return level
}

// requestedLevel returns the lowest log level that a stateless request asks for. If it does not ask for a level, the
// result is above all levels.
func requestedLevel(meta json.RawMessage) int {
	level, err := text(meta, "io.modelcontextprotocol/logLevel")
	if severity := severityOf(level); err == nil && severity > 0 {
		return severity
	}
	return len(apps.LevelNames()) + 1
}

// withMinimumLevel returns a receiver that drops log messages below a level.
func withMinimumLevel(severity int, notify func(rpc.Notification)) func(rpc.Notification) {
	if notify == nil {
		return nil
	}
	return func(n rpc.Notification) {
		if n.Method != "notifications/message" || severityOf(messageLevel(n.Params)) >= severity {
			notify(n)
		}
	}
}
