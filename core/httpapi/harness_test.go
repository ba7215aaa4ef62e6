package httpapi

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/access"
	"github.com/ropewalk/ropewalk/core/apps"
	"github.com/ropewalk/ropewalk/core/event"
	"github.com/ropewalk/ropewalk/core/tools"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"), // ends by itself, seconds later
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"))    // one for the whole process
}

// memoryAccess knows bearers and cookies by name.
type memoryAccess struct {
	dev     bool
	key     string
	adapter bool

	mu       sync.Mutex
	bearers  map[string]core.Identity
	cookies  map[string]core.Identity
	members  map[string][]core.Workspace // by user id
	attempts map[string]int              // failed and other logins by client
	away     bool                        // it cannot tell
	hang     bool                        // it does not answer until the context ends
}

const attemptsAllowed = 5

func newAccess() *memoryAccess {
	return &memoryAccess{
		key: "the-right-key-0123", bearers: map[string]core.Identity{"the-right-key-0123": core.Owner()},
		cookies:  map[string]core.Identity{},
		attempts: map[string]int{},
		members: map[string][]core.Workspace{
			"usr_owner": {{ID: core.DefaultWorkspaceID, Name: "Default", Role: core.RoleAdmin}, {ID: "ws_second", Name: "Second", Role: core.RoleAdmin}},
		},
	}
}

func (a *memoryAccess) user(name string, org core.Role, workspaces ...core.Workspace) {
	a.bearers[name] = core.Identity{Issuer: "https://idp.example", Subject: name, User: core.User{ID: name, Email: name + "@example.com", OrgRole: org}}
	a.members[name] = workspaces
}

func (a *memoryAccess) Dev() bool { return a.dev }

func (a *memoryAccess) API(ctx context.Context, bearer, cookie string) (core.Identity, error) {
	a.mu.Lock()
	away, hang := a.away, a.hang
	id, found := a.bearers[bearer]
	if bearer == "" {
		id, found = a.cookies[cookie]
	}
	a.mu.Unlock()
	switch {
	case hang:
		<-ctx.Done()
		return core.Identity{}, ctx.Err()
	case away:
		return core.Identity{}, core.Errorf(core.CodeUnavailable, "the auth adapter is away").WithRetryAfter(1500 * time.Millisecond)
	case a.dev:
		return core.Owner(), nil
	case !found:
		return core.Identity{}, core.Errorf(core.CodeUnauthenticated, "no such credential")
	}
	return id, nil
}

func (a *memoryAccess) Caller(ctx context.Context, id core.Identity, workspace string) (core.Caller, error) {
	all, _ := a.Workspaces(ctx, id)
	for _, w := range all {
		if workspace == "" || w.ID == workspace {
			return core.Caller{Identity: id, Workspace: w}, nil
		}
	}
	return core.Caller{}, core.Errorf(core.CodeWorkspaceDenied, "not a member of that workspace")
}

func (a *memoryAccess) Workspaces(_ context.Context, id core.Identity) ([]core.Workspace, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.members[id.User.ID]), nil
}

func (a *memoryAccess) AllowLogin(client string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.attempts[client]++
	if a.attempts[client] > attemptsAllowed {
		return core.Errorf(core.CodeRateLimited, "too many logins").WithRetryAfter(6 * time.Second)
	}
	return nil
}

func (a *memoryAccess) Login(_ context.Context, key string) (string, error) {
	if key != a.key {
		return "", core.Errorf(core.CodeUnauthenticated, "the key is wrong")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	token := fmt.Sprintf("cookie-%d", len(a.cookies))
	a.cookies[token] = core.Owner()
	return token, nil
}

func (a *memoryAccess) Logout(_ context.Context, token string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.cookies, token)
	return nil
}

func (a *memoryAccess) BeginLogin(_ context.Context, redirectURI, returnTo string) (access.LoginStart, error) {
	if !a.adapter {
		return access.LoginStart{}, core.Errorf(core.CodeNotConfigured, "no auth adapter can log people in; set auth.adapter")
	}
	return access.LoginStart{URL: "https://idp.example/authorize?redirect_uri=" + redirectURI + "&state=s1&return=" + returnTo, Binding: "b1"}, nil
}

func (a *memoryAccess) FinishLogin(_ context.Context, in access.LoginAnswer) (string, string, error) {
	if !a.adapter {
		return "", "", core.Errorf(core.CodeNotConfigured, "no auth adapter can log people in; set auth.adapter")
	}
	if in.State != "s1" || in.Code != "c1" || in.Binding != "b1" {
		return "", "", core.Errorf(core.CodeUnauthenticated, "the state is unknown")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cookies["idp-cookie"] = a.bearers["alice"]
	return "idp-cookie", "/apps?tab=1", nil
}

// memoryApps is a yard without processes. What fails is set by name.
type memoryApps struct {
	mu        sync.Mutex
	apps      map[string][]core.App // by workspace
	installed []apps.InstallRequest
	asked     []string         // resource URIs
	fail      map[string]error // by verb
	resource  apps.Resource
	wait      chan struct{} // Start waits for it when not nil
	began     chan struct{} // and says here that it waits
}

func newApps() *memoryApps {
	return &memoryApps{
		began: make(chan struct{}, 1),
		fail:  map[string]error{}, resource: apps.Resource{MIME: "text/html;profile=mcp-app", Body: []byte("<p>view</p>")},
		apps: map[string][]core.App{core.DefaultWorkspaceID: {
			{
				Name: "echo", BundleName: "@acme/echo", Version: "1.0.0", Status: core.StateRunning, Type: "plain", ToolCount: 2, TrustScore: 80,
				UI: &core.UI{Name: "Echo", Icon: "e", PrimaryView: core.PrimaryView{ResourceURI: "ui://echo/main"}},
			},
			{Name: "quiet", BundleName: "@acme/quiet", Version: "0.1.0", Status: core.StateStopped, Type: "plain"},
		}},
	}
}

func (y *memoryApps) List(ws string) []core.App {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.apps[ws]
}

func (y *memoryApps) Health(ws string) []core.AppHealth {
	var all []core.AppHealth
	for _, a := range y.List(ws) {
		all = append(all, core.AppHealth{Name: a.Name, State: a.Status, Uptime: 1.5, RestartCount: 1})
	}
	return all
}

func (y *memoryApps) Install(_ context.Context, ws string, r apps.InstallRequest) (core.App, error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.installed = append(y.installed, r)
	if err := y.fail["install"]; err != nil {
		return core.App{}, err
	}
	a := core.App{Name: "new", BundleName: "@acme/new", Version: "1.0.0", Status: core.StateRunning, Type: "plain"}
	y.apps[ws] = append(y.apps[ws], a)
	return a, nil
}

func (y *memoryApps) find(verb, ws, name string) (core.App, error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if err := y.fail[verb]; err != nil {
		return core.App{}, err
	}
	for _, a := range y.apps[ws] {
		if a.Name == name {
			return a, nil
		}
	}
	return core.App{}, core.Errorf(core.CodeNotFound, "no app is named %q", name)
}

func (y *memoryApps) Uninstall(_ context.Context, ws, name string) (string, error) {
	a, err := y.find("uninstall", ws, name)
	return "/home/apps/" + a.Name, err
}

func (y *memoryApps) Start(ctx context.Context, ws, name string) (core.App, error) {
	if y.wait != nil {
		y.began <- struct{}{}
		select {
		case <-y.wait:
		case <-ctx.Done():
			return core.App{}, ctx.Err()
		}
	}
	a, err := y.find("start", ws, name)
	a.Status = core.StateRunning
	return a, err
}

func (y *memoryApps) Stop(_ context.Context, ws, name string) (core.App, error) {
	a, err := y.find("stop", ws, name)
	a.Status = core.StateStopped
	return a, err
}

func (y *memoryApps) Resource(_ context.Context, ws, name, uri string) (apps.Resource, error) {
	if _, err := y.find("resource", ws, name); err != nil {
		return apps.Resource{}, err
	}
	y.mu.Lock()
	defer y.mu.Unlock()
	y.asked = append(y.asked, uri)
	if strings.HasSuffix(uri, "missing") {
		return apps.Resource{}, core.Errorf(core.CodeResourceNotFound, "no such resource")
	}
	return y.resource, nil
}

// memoryTools answers with what the test sets.
type memoryTools struct {
	mu     sync.Mutex
	result string
	err    error
	calls  []tools.Call
	keep   []core.Caller // on purpose past the request, as a room may
	panics bool
}

func (n *memoryTools) List(core.Caller) []tools.Listed { return make([]tools.Listed, 3) }

func (n *memoryTools) Call(ctx context.Context, c core.Caller, call tools.Call) (json.RawMessage, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.panics {
		panic("tool path")
	}
	n.calls, n.keep = append(n.calls, call), append(n.keep, c)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if n.err != nil {
		return nil, n.err
	}
	if n.result == "" {
		return json.RawMessage(`{"content":[{"type":"text","text":"ok"}]}`), nil
	}
	return json.RawMessage(n.result), nil
}

// house is a running server with everything behind it in memory.
type house struct {
	*Server
	access *memoryAccess
	yard   *memoryApps
	tools  *memoryTools
	bus    *event.Bus
	addr   string
	log    *bytes.Buffer
	served chan error
}

func loopbackOnly() []netip.Prefix {
	return []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
}

// open starts a server; change may alter its options. With an API key unless the access says dev.
func open(t testing.TB, a *memoryAccess, change func(*Options)) *house {
	t.Helper()
	h := &house{access: a, yard: newApps(), tools: &memoryTools{}, bus: event.New(hclog.NewNullLogger()), log: &bytes.Buffer{}, served: make(chan error, 1)}
	o := Options{
		Access: a, Apps: h.yard, Tools: h.tools, Events: h.bus, Version: "test", TrustedProxies: loopbackOnly(),
		Logger: hclog.New(&hclog.LoggerOptions{Output: h.log, Level: hclog.Warn, Mutex: &sync.Mutex{}}),
	}
	if change != nil {
		change(&o)
	}
	h.Server = New(o)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h.addr = ln.Addr().String()
	go func() { h.served <- h.Serve(ln) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := h.Shutdown(ctx); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		if err := <-h.served; err != nil {
			t.Errorf("serve: %v", err)
		}
		h.bus.Close()
	})
	return h
}

// call is one request as a table row writes it.
type call struct {
	method, path, body string
	header             map[string]string
	host               string
}

type reply struct {
	*http.Response
	body string
}

func (r reply) json(t testing.TB) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(r.body), &v); err != nil {
		t.Fatalf("the body %q is not an object: %v", r.body, err)
	}
	return v
}

func (r reply) code() string {
	var v struct {
		Error string `json:"error"`
	}
	_ = json.Unmarshal([]byte(r.body), &v)
	return v.Error
}

var client = &http.Client{
	Transport:     &http.Transport{DisableKeepAlives: true, DisableCompression: true},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	Timeout:       20 * time.Second,
}

// do sends c with the owner's key unless the row says who is calling.
func (h *house) do(t testing.TB, c call) reply {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), c.method, "http://"+h.addr+c.path, strings.NewReader(c.body))
	if err != nil {
		t.Fatal(err)
	}
	if c.body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if !h.access.dev {
		req.Header.Set("Authorization", "Bearer "+h.access.key)
	}
	for name, value := range c.header {
		req.Header.Set(name, value)
		if value == "" {
			req.Header.Del(name)
		}
	}
	req.Host = c.host
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{resp, string(body)}
}

func dial(t testing.TB, addr string) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
	return conn, bufio.NewReader(conn)
}

// exchange sends one request on a kept connection and reads its answer.
func exchange(t testing.TB, conn net.Conn, r *bufio.Reader, request string) (status int, body string) {
	t.Helper()
	if _, err := io.WriteString(conn, request); err != nil {
		t.Error(err)
		return 0, ""
	}
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer resp.Body.Close()
	read, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return resp.StatusCode, string(read)
}
