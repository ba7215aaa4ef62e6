package tools

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/core/apps/notify"
	"github.com/ropewalk/ropewalk/core/rawjson"
	"github.com/ropewalk/ropewalk/core/rpc"
)

// maxSubscriptions bounds the resources that one session subscribes to.
const maxSubscriptions = 500

// SessionOptions describe a client that stays for more than one request.
type SessionOptions struct {
	// ID is unique among all sessions of the server; an app that asks its clients gets an instance
	// for it. "" is a stream of the revision without sessions: nothing is kept for it.
	ID           string
	Capabilities json.RawMessage // the client capabilities it declared; nil for none
	// Notify gets what apps say by themselves and is for this session: updates of resources it
	// subscribed to, log messages of the level it set, the end of elicitations it was asked, changed
	// lists. It must not wait, and what is under way while Close runs may still come after it.
	Notify func(rpc.Notification)
}

// Session is one client's place in the hall: its subscriptions, its log level, and what apps keep
// for it. It belongs to one caller's workspace. Close ends it.
type Session struct {
	n         *Namespace
	workspace string
	id        string
	client    *interact.Client
	notify    func(rpc.Notification)

	mu        sync.Mutex
	severity  int                 // of the least log message it wants, from 1; 0 when it set none
	resources map[string]place    // what it subscribed to, by the URI it named
	views     map[string]struct{} // the apps whose views it read
	closed    bool
}

// Open opens a session in c's workspace.
func (n *Namespace) Open(c core.Caller, o SessionOptions) *Session {
	capabilities := o.Capabilities
	if !c.MayNameRoots() {
		capabilities = rootless(capabilities)
	}
	s := &Session{
		n: n, workspace: c.Workspace.ID, id: o.ID, client: interact.NewClient(o.ID, false, capabilities),
		notify: o.Notify, resources: map[string]place{},
	}
	n.boards.join(n.apps, s)
	return s
}

// Close ends the session: its subscriptions, and the instances that apps have for it. It waits for
// those to end, and may be called again.
func (s *Session) Close(ctx context.Context) {
	if s.leave(ctx) {
		s.n.EndSession(s.id)
	}
}

// Pause is Close for a session that will be opened again under the same ID: the instances that apps
// have for it live on until nobody used them for a while.
func (s *Session) Pause(ctx context.Context) { s.leave(ctx) }

// EndSession ends the instances that apps have for a session, and waits for that.
func (n *Namespace) EndSession(id string) { n.apps.EndSession(id) }

func (s *Session) leave(ctx context.Context) bool {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return false
	}
	s.closed = true
	resources := s.resources
	s.resources = nil
	s.mu.Unlock()
	s.n.boards.leave(s)
	for uri, at := range resources {
		if err := s.n.apps.Unsubscribe(ctx, s.workspace, at.server, s.id, at.uri); err != nil {
			s.n.log.Debug("An app was not told that a subscription ended", "server", at.server, "uri", uri, "error", err)
		}
	}
	return true
}

// Subscribe is resources/subscribe: updates of the resource reach Notify under the URI given here.
// The errors are those of ReadResource.
func (s *Session) Subscribe(ctx context.Context, uri string) error {
	at, _, err := s.n.render(s.workspace).places.find(uri)
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
		return core.Errorf(core.CodeBadRequest, "a session can subscribe to %d resources; unsubscribe from others first", maxSubscriptions)
	}
	s.resources[uri] = at
	s.mu.Unlock()
	if err = s.n.apps.Subscribe(ctx, s.workspace, at.server, s.id, at.uri); err != nil {
		s.forget(uri)
		return err
	}
	if s.over() { // closed meanwhile, which could not end what was not there yet
		return s.n.apps.Unsubscribe(ctx, s.workspace, at.server, s.id, at.uri)
	}
	return nil
}

// Unsubscribe is resources/unsubscribe. It is no error that the session was not subscribed.
func (s *Session) Unsubscribe(ctx context.Context, uri string) error {
	at, ok := s.forget(uri)
	if !ok {
		return nil
	}
	return s.n.apps.Unsubscribe(ctx, s.workspace, at.server, s.id, at.uri)
}

func (s *Session) forget(uri string) (place, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, ok := s.resources[uri]
	delete(s.resources, uri)
	return at, ok
}

// view notes that the session read a view of an app.
func (s *Session) view(server string) {
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

func (s *Session) over() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// SetLevel is logging/setLevel: from now on the session gets log messages of that level and above,
// also those that belong to no call of its own in this workspace. core.CodeBadRequest for a level
// that MCP does not know.
func (s *Session) SetLevel(ctx context.Context, level string) error {
	severity := severityOf(level)
	if severity == 0 {
		return core.Errorf(core.CodeBadRequest, "level is %.50q; it can be %s", level, strings.Join(notify.LevelNames(), ", "))
	}
	s.mu.Lock()
	s.severity = severity
	s.mu.Unlock()
	s.n.apps.SetLogLevel(ctx, s.workspace, s.n.boards.level(s.workspace))
	return nil
}

// RootsChanged passes notifications/roots/list_changed on to the apps that asked this client.
func (s *Session) RootsChanged(ctx context.Context) { s.n.apps.RootsChanged(ctx, s.id) }

func (s *Session) level() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.severity
}

// tell hands over what an app said, if it is for this session.
func (s *Session) tell(t notify.Notification) {
	if (t.Session != "" || t.Apart) && t.Session != s.id || slices.Contains(t.Without, s.id) {
		return
	}
	switch t.Method {
	case "notifications/message":
		if level := s.level(); level == 0 || severityOf(messageLevel(t.Params)) < level {
			return
		}
	case "notifications/resources/updated":
		s.tellUpdate(t)
		return
	}
	s.notify(t.Notification)
}

// tellUpdate hands over an update of a resource, or of a part of one, under the URI that the
// session subscribed to.
func (s *Session) tellUpdate(t notify.Notification) {
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

// severityOf is a level's rank, from 1 for the least severe; 0 for what is none.
func severityOf(level string) int { return slices.Index(notify.LevelNames(), level) + 1 }

func messageLevel(params json.RawMessage) string {
	level, err := text(params, "level")
	if err != nil {
		return ""
	}
	return level
}

// levelOf is the severity that a request of the revision without sessions wants to see log messages
// from; higher than any without one.
func levelOf(meta json.RawMessage) int {
	level, err := text(meta, "io.modelcontextprotocol/logLevel")
	if severity := severityOf(level); err == nil && severity > 0 {
		return severity
	}
	return len(notify.LevelNames()) + 1
}

// atLeast passes on everything but log messages below a level.
func atLeast(severity int, notify func(rpc.Notification)) func(rpc.Notification) {
	if notify == nil {
		return nil
	}
	return func(n rpc.Notification) {
		if n.Method != "notifications/message" || severityOf(messageLevel(n.Params)) >= severity {
			notify(n)
		}
	}
}
