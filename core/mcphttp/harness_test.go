package mcphttp

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/rpc"
	"github.com/ropewalk/ropewalk/core/tools"
	"github.com/ropewalk/ropewalk/core/webguard"
	"github.com/ropewalk/ropewalk/plugins/auth"
	"github.com/ropewalk/ropewalk/plugins/sessionstore/memory"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),    // one per process, never ends
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"), // ends at its next tick, within 10 s
	)
}

// fakeNamespace is an in-memory namespace with a few tools of known behavior, the same in every workspace.
type fakeNamespace struct {
	before           func() // called before each call; may be nil
	*tools.Namespace        // serves the app's prompts, resources and everything else except tools
	app              *fakeApp

	mu       sync.Mutex
	listed   []tools.Listed
	watchers map[int]func(core.Kind)
	nextID   int
	calls    atomic.Int64
	release  chan struct{} // releases the waiting tool
	started  chan string   // names of waiting tools that have started
	ended    chan error    // the errors with which waiting tools ended
	revoked  []string      // users whose tasks were ended
}

func newFakeNamespace() *fakeNamespace {
	f := newFakeApp()
	h := &fakeNamespace{Namespace: f.namespace(), app: f, watchers: map[int]func(core.Kind){}, release: make(chan struct{}), started: make(chan string, 4096), ended: make(chan error, 4096)}
	for _, name := range []string{"echo", "progress", "wait", "fail", "panic", "down", "hidden"} {
		full := "demo__" + name
		h.listed = append(h.listed, tools.Listed{Name: full, Tool: core.Tool{Server: "demo", Name: name}, Raw: json.RawMessage(
			`{"name":"` + full + `","title":"T","inputSchema":{"type":"object","x-unknown":12345678901234567890},"_meta":{"ui":{"resourceUri":"ui://demo/x"}},"execution":{"taskSupport":"optional"}}`)})
	}
	return h
}

func (h *fakeNamespace) EndTasks(userID string, revoked func(core.Caller) bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if revoked(core.Caller{Identity: core.Identity{User: core.User{ID: userID}}}) {
		h.revoked = append(h.revoked, userID)
	}
}

func (h *fakeNamespace) ListFor(c core.Caller, _ tools.From) []tools.Listed {
	h.mu.Lock()
	defer h.mu.Unlock()
	var seen []tools.Listed
	for _, t := range h.listed {
		if t.Tool.Name != "hidden" || c.User.OrgRole.Admin() {
			seen = append(seen, t)
		}
	}
	return seen
}

func (h *fakeNamespace) Mirrors(c core.Caller, from tools.From, name string) []core.Mirror {
	for _, t := range h.ListFor(c, from) {
		if t.Name == name {
			return t.Tool.Mirrors
		}
	}
	return nil
}

func (h *fakeNamespace) ItemsFor(c core.Caller, from tools.From, kind core.Kind) []tools.Item {
	if kind != core.KindTools {
		return h.Namespace.ItemsFor(c, from, kind)
	}
	var items []tools.Item
	for _, t := range h.ListFor(c, from) {
		items = append(items, tools.Item{Server: t.Tool.Server, Name: t.Name, Raw: t.RawFor(from)})
	}
	return items
}

func (h *fakeNamespace) ListJSON(c core.Caller, from tools.From, kind core.Kind) json.RawMessage {
	if kind != core.KindTools {
		return h.Namespace.ListJSON(c, from, kind)
	}
	raws := []json.RawMessage{}
	for _, t := range h.ListFor(c, from) {
		raws = append(raws, t.Raw)
	}
	text, _ := json.Marshal(raws) // the listed strings are JSON
	return text
}

func (h *fakeNamespace) WatchLists(_ string, changed func(core.Kind)) func() {
	h.mu.Lock()
	defer h.mu.Unlock()
	id := h.nextID
	h.nextID++
	h.watchers[id] = changed
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.watchers, id)
	}
}

func (h *fakeNamespace) watched() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.watchers)
}

func (h *fakeNamespace) changed() { h.change(core.KindTools) }

func (h *fakeNamespace) change(kind core.Kind) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, f := range h.watchers {
		f(kind)
	}
}

// Called implements Tools.
func (h *fakeNamespace) Called(call tools.Call) string { return call.Name }

func (h *fakeNamespace) Call(ctx context.Context, c core.Caller, call tools.Call) (json.RawMessage, bool, error) {
	if h.before != nil {
		h.before()
	}
	raw, err := h.answer(ctx, c, call)
	return raw, false, err
}

func (h *fakeNamespace) answer(ctx context.Context, c core.Caller, call tools.Call) (json.RawMessage, error) {
	h.calls.Add(1)
	switch call.Name {
	case "demo__echo":
		return echoed(c, call), nil
	case "demo__progress":
		token := progressToken(call.Meta)
		var args struct{ Steps int }
		_ = json.Unmarshal(call.Arguments, &args)
		for i := range args.Steps {
			call.Notify(rpc.Notification{Method: "notifications/progress", Params: json.RawMessage(
				fmt.Sprintf(`{"progressToken":%s,"progress":%d,"message":%q,"total":1.50}`, token, i+1, c.Subject+"/"+c.Workspace.ID))})
		}
		return echoed(c, call), nil
	case "demo__slow":
		for i := range 2 {
			call.Notify(rpc.Notification{Method: "notifications/progress", Params: json.RawMessage(fmt.Sprintf(`{"progressToken":"p","progress":%d}`, i+1))})
			if i == 0 {
				<-h.release
			}
		}
		h.ended <- nil
		return echoed(c, call), nil
	case "demo__wait":
		h.started <- call.Name
		select {
		case <-ctx.Done():
			h.ended <- ctx.Err()
			return nil, ctx.Err()
		case <-h.release:
			h.ended <- nil
			return echoed(c, call), nil
		}
	case "demo__ask":
		if call.InputResponses == nil {
			return json.RawMessage(`{"resultType":"input_required","inputRequests":{"q":{"method":"elicitation/create","params":{"mode":"form","message":"?","requestedSchema":{"type":"object"}}}},"requestState":"s"}`), nil
		}
		return json.RawMessage(`{"content":[{"type":"text","text":"plain"}]}`), nil
	case "demo__plain", "demo__region":
		return json.RawMessage(`{"content":[{"type":"text","text":"plain"}]}`), nil
	case "demo__fail":
		return nil, &rpc.Error{Code: -32042, Message: "open the page", Data: json.RawMessage(`{"elicitations":[{"n":12345678901234567890}]}`)}
	case "demo__panic":
		panic("the tool path broke")
	case "demo__broken":
		return json.RawMessage(`{"content":`), nil
	case "demo__strict":
		return nil, core.Errorf(core.CodeInvalidInput, "arguments of demo__strict do not match").WithDetails(map[string]any{"errors": []string{"/a"}})
	case "demo__down":
		return nil, core.Errorf(core.CodeUnavailable, "demo is restarting")
	case "demo__partly":
		return nil, core.Errorf(core.CodeForbidden, "stopping apps requires the admin role")
	case "demo__hidden":
		if !c.User.OrgRole.Admin() {
			return nil, core.Errorf(core.CodeForbidden, "admins only")
		}
		return echoed(c, call), nil
	}
	return nil, core.Errorf(core.CodeToolNotFound, "there is no tool %q in this workspace", call.Name)
}

// echoed returns a result that contains the caller, the tool and the raw arguments.
func echoed(c core.Caller, call tools.Call) json.RawMessage {
	args := call.Arguments
	if args == nil {
		args = json.RawMessage("{}")
	}
	return json.RawMessage(fmt.Sprintf(`{"content":[{"type":"text","text":%q,"annotations":{"priority":1.0}}],"structuredContent":{"big":12345678901234567890,"args":%s},"_meta":{"trace":"t"},"isError":false}`,
		c.Subject+"/"+c.Workspace.ID, args))
}

func progressToken(meta json.RawMessage) string {
	var m struct {
		Token json.RawMessage `json:"progressToken"`
	}
	if json.Unmarshal(meta, &m) != nil || m.Token == nil {
		return `"none"`
	}
	return string(m.Token)
}

// people is a fake Access. A token is "<subject>". Every subject is a member of ws_one and ws_<subject>.
type people struct {
	offers string // members of the provider's document
	dev    bool
	down   atomic.Bool
	gone   atomic.Bool  // all callers are invalid
	meta   atomic.Int64 // number of requests for the provider's document
}

func (p *people) Dev() bool { return p.dev }

func (p *people) MCP(_ context.Context, bearer, resource string) (core.Identity, error) {
	if p.down.Load() {
		return core.Identity{}, core.Errorf(core.CodeUnavailable, "the identity provider is down").WithRetryAfter(1500 * time.Millisecond)
	}
	if strings.HasPrefix(bearer, "bad") {
		return core.Identity{}, core.Errorf(core.CodeUnauthenticated, "no such token")
	}
	role := core.RoleMember
	if bearer == "admin" {
		role = core.RoleAdmin
	}
	id := core.Identity{Issuer: "https://idp.test", Subject: bearer, User: core.User{ID: "usr_" + bearer, OrgRole: role}}
	if only, ok := strings.CutPrefix(bearer, "for-"); ok && only != resource {
		return core.Identity{}, core.Errorf(core.CodeUnauthenticated, "the token is for another resource")
	}
	if granted, ok := strings.CutPrefix(bearer, "granted-"); ok {
		id.Granted = strings.ReplaceAll(granted, "+", " ")
	}
	return id, nil
}

func (p *people) Caller(_ context.Context, id core.Identity, workspace string) (core.Caller, error) {
	if workspace == "" {
		workspace = "ws_one"
	}
	if workspace != "ws_one" && workspace != "ws_two" && workspace != "ws_"+id.Subject && workspace != core.DefaultWorkspaceID {
		return core.Caller{}, core.Errorf(core.CodeWorkspaceDenied, "you are not a member of this workspace")
	}
	return core.Caller{Identity: id, Workspace: core.Workspace{ID: workspace, Role: core.RoleMember}}, nil
}

func (p *people) Current(_ context.Context, c core.Caller) (core.Caller, error) {
	if p.gone.Load() {
		return core.Caller{}, core.Errorf(core.CodeUnauthenticated, "the user is gone")
	}
	return c, nil
}

func (p *people) Describe(context.Context) (auth.Description, error) {
	if p.dev {
		return auth.Description{}, core.Errorf(core.CodeNotFound, "no auth adapter is configured")
	}
	return auth.Description{Issuer: "https://idp.test", AuthorizationServers: []string{"https://idp.test"}}, nil
}

func (p *people) Metadata(context.Context) (json.RawMessage, error) {
	p.meta.Add(1)
	switch {
	case p.dev:
		return nil, core.Errorf(core.CodeNotFound, "no auth adapter is configured")
	case p.down.Load():
		return nil, core.Errorf(core.CodeUnavailable, "the identity provider is down")
	}
	return json.RawMessage(`{"issuer":"https://idp.test",` + p.offers + `"x":1}`), nil
}

// rig is an endpoint on its own Fiber app, listening on loopback.
type rig struct {
	*testing.T
	endpoint      *Endpoint
	fakeNamespace *fakeNamespace
	people        *people
	store         *memory.Store
	url           string
	addr          string
	client        *http.Client
	released      *atomic.Int64 // bodies of calls whose memory was released
}

func start(t *testing.T, change func(*Options)) *rig {
	t.Helper()
	r := &rig{T: t, fakeNamespace: newFakeNamespace(), people: &people{}, store: memory.New(), released: new(atomic.Int64)}
	o := Options{Tools: r.fakeNamespace, Access: r.people, Store: r.store, Features: config.Features{}, Logger: hclog.NewNullLogger(), Version: "1.2.3"}
	if change != nil {
		change(&o)
	}
	r.fakeNamespace, _ = o.Tools.(*fakeNamespace)
	r.people, _ = o.Access.(*people)
	r.endpoint = New(o)
	app := fiber.New(fiber.Config{ // configured as in httpapi
		DisableStartupMessage: true, Immutable: true, StrictRouting: true, CaseSensitive: true, BodyLimit: 16 << 20, ReadBufferSize: 16 << 10,
		ReadTimeout: 60 * time.Second, WriteTimeout: 60 * time.Second, IdleTimeout: 255 * time.Second,
	})
	app.Use(func(c *fiber.Ctx) error { // as package httpapi does
		webguard.SetBody(c.Context(), func() { r.released.Add(1) })
		return c.Next()
	})
	r.endpoint.Mount(app)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.addr = listener.Addr().String()
	r.url = "http://" + r.addr
	served := make(chan error, 1)
	go func() { served <- app.Listener(listener) }()
	transport := &http.Transport{MaxIdleConnsPerHost: 128}
	r.client = &http.Client{Transport: transport}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := r.endpoint.Close(ctx); err != nil {
			t.Errorf("Close: %v", err)
		}
		transport.CloseIdleConnections()
		if err := app.ShutdownWithContext(ctx); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		_ = listener.Close() // needed if the test ends before the server has started
		<-served
	})
	return r
}

// who is a client's identity: a token, a workspace and, once it has one, a session.
type who struct{ token, workspace, session string }

var alice = who{token: "alice", workspace: "ws_one"}

// ask sends a request with the usual headers, modified by extra ("Name: value", or "-Name" to omit one).
func (r *rig) ask(method string, w who, body string, extra ...string) *http.Response {
	r.Helper()
	resp, err := r.client.Do(r.request(method, w, body, extra...))
	if err != nil {
		r.Fatal(err)
	}
	return resp
}

func (r *rig) request(method string, w who, body string, extra ...string) *http.Request {
	r.Helper()
	req, err := http.NewRequestWithContext(r.Context(), method, r.url+"/mcp", strings.NewReader(body))
	if err != nil {
		r.Fatal(err)
	}
	req.Header.Set("Accept", "application/json, text/event-stream")
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/json")
	}
	for name, value := range map[string]string{"Authorization": w.token, "X-Workspace-Id": w.workspace, "Mcp-Session-Id": w.session} {
		if name == "Authorization" && value != "" {
			value = "Bearer " + value
		}
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	for _, e := range extra {
		if name, ok := strings.CutPrefix(e, "-"); ok {
			req.Header.Del(name)
			continue
		}
		name, value, _ := strings.Cut(e, ": ")
		if name == "Host" {
			req.Host = value
		} else {
			req.Header.Set(name, value)
		}
	}
	return req
}

// say sends a request like ask and reads the whole response, which must end.
func (r *rig) say(method string, w who, body string, extra ...string) (*http.Response, string) {
	r.Helper()
	resp := r.ask(method, w, body, extra...)
	defer resp.Body.Close()
	defer time.AfterFunc(2*time.Minute, func() { resp.Body.Close() }).Stop()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		r.Fatal(err)
	}
	return resp, string(text)
}

func hello(version string) string {
	return `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"` + version + `","capabilities":{},"clientInfo":{"name":"probe","version":"9"}}}`
}

// join opens a session and returns w with it.
func (r *rig) join(w who, version ...string) who {
	r.Helper()
	resp, body := r.say("POST", w, hello(append(version, "2025-11-25")[0]))
	w.session = resp.Header.Get("Mcp-Session-Id")
	if resp.StatusCode != 200 || w.session == "" {
		r.Fatalf("initialize: %d %s", resp.StatusCode, body)
	}
	if resp, body := r.say("POST", w, `{"jsonrpc":"2.0","method":"notifications/initialized"}`); resp.StatusCode != 202 || body != "" {
		r.Fatalf("initialized: %d %s", resp.StatusCode, body)
	}
	return w
}

func callBody(id any, tool, args string) string {
	text, _ := json.Marshal(id)
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, text, tool, args)
}

func progressBody(id int, token string, steps int) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"demo__progress","arguments":{"steps":%d},"_meta":{"progressToken":%q}}}`, id, steps, token)
}

// events returns the data of each event in a stream.
func events(body string) []string {
	var all []string
	for part := range strings.SplitSeq(body, "\n\n") {
		var data []string
		for line := range strings.SplitSeq(part, "\n") {
			if text, ok := strings.CutPrefix(line, "data: "); ok {
				data = append(data, text)
			}
		}
		if strings.Join(data, "") != "" { // an event without data only marks where to resume
			all = append(all, strings.Join(data, "\n"))
		}
	}
	return all
}

// in returns the same rig for a subtest.
func (r *rig) in(t *testing.T) *rig {
	c := *r
	c.T = t
	return &c
}
