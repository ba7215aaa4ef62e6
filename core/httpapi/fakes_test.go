package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/access"
	"github.com/ropewalk/ropewalk/core/apps"
	"github.com/ropewalk/ropewalk/core/apps/notify"
	"github.com/ropewalk/ropewalk/core/apps/source"
	"github.com/ropewalk/ropewalk/core/tools"
)

// fakeAccess knows bearers and cookies by name.
type fakeAccess struct {
	dev     bool
	key     string
	adapter bool
	several []string // the names of the providers that people log in with, when there are several

	mu       sync.Mutex
	bearers  map[string]core.Identity
	cookies  map[string]core.Identity
	members  map[string][]core.Workspace // by user id
	attempts map[string]int              // failed and other logins by client
	away     bool                        // it cannot tell
	keys     []core.APIKey
	watchers []func(string)
	hang     bool // it does not answer until the context ends
	asked    int  // how often credentials were checked
	binds    bool // tokens come with a proof, which is good once
}

const attemptsAllowed = 5

func newAccess() *fakeAccess {
	return &fakeAccess{
		key: "the-right-key-0123", bearers: map[string]core.Identity{"the-right-key-0123": core.Owner()},
		cookies:  map[string]core.Identity{},
		attempts: map[string]int{},
		members: map[string][]core.Workspace{
			"usr_owner": {{ID: core.DefaultWorkspaceID, Name: "Default", Role: core.RoleAdmin}, {ID: "ws_second", Name: "Second", Role: core.RoleAdmin}},
		},
	}
}

func (a *fakeAccess) user(name string, org core.Role, workspaces ...core.Workspace) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.bearers[name] = core.Identity{Issuer: "https://idp.example", Subject: name, Token: "hash of " + name, User: core.User{ID: name, Email: name + "@example.com", OrgRole: org}}
	a.members[name] = workspaces
}

func (a *fakeAccess) Dev() bool { return a.dev }

func (a *fakeAccess) API(ctx context.Context, bearer, cookie string) (core.Identity, error) {
	a.mu.Lock()
	a.asked++
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
	case !found, a.binds && !core.TokenRequestOf(ctx).HasProof():
		return core.Identity{}, core.Errorf(core.CodeUnauthenticated, "no such credential")
	}
	return id, nil
}

func (a *fakeAccess) Caller(ctx context.Context, id core.Identity, workspace string) (core.Caller, error) {
	all, _ := a.Workspaces(ctx, id)
	for _, w := range all {
		if workspace == "" || w.ID == workspace {
			return core.Caller{Identity: id, Workspace: w}, nil
		}
	}
	return core.Caller{}, core.Errorf(core.CodeWorkspaceDenied, "not a member of that workspace")
}

func (a *fakeAccess) Workspaces(_ context.Context, id core.Identity) ([]core.Workspace, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.members[id.User.ID]), nil
}

func (a *fakeAccess) Keys(context.Context, core.Caller) ([]core.APIKey, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.keys), nil
}

func (a *fakeAccess) CreateKey(_ context.Context, c core.Caller, k access.NewKey) (core.APIKey, core.Secret, error) {
	if k.Name == "" {
		return core.APIKey{}, "", core.Errorf(core.CodeBadRequest, "name is missing")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	made := core.APIKey{ID: fmt.Sprintf("key_%d", len(a.keys)), Name: k.Name, Role: cmp.Or(k.Role, core.RoleMember), User: c.User, Workspace: c.Workspace.ID, CreatedAt: time.Now(), ExpiresAt: k.ExpiresAt}
	a.keys = append(a.keys, made)
	return made, "rwk_secret", nil
}

func (a *fakeAccess) RevokeKey(_ context.Context, _ core.Caller, id string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	before := len(a.keys)
	a.keys = slices.DeleteFunc(a.keys, func(k core.APIKey) bool { return k.ID == id })
	if len(a.keys) == before {
		return core.Errorf(core.CodeNotFound, "no such API key in this workspace")
	}
	return nil
}

// BindsTokens is part of Access.
func (a *fakeAccess) BindsTokens() bool { return a.binds }

func (a *fakeAccess) Current(ctx context.Context, c core.Caller) (core.Caller, error) {
	a.mu.Lock()
	_, found := a.bearers[c.Subject]
	a.mu.Unlock()
	if !found {
		return core.Caller{}, core.Errorf(core.CodeUnauthenticated, "revoked")
	}
	return a.Caller(ctx, c.Identity, c.Workspace.ID)
}

func (a *fakeAccess) WatchRevocations(changed func(string)) func() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.watchers = append(a.watchers, changed)
	return func() {}
}

// revoke ends a bearer and tells the watchers.
func (a *fakeAccess) revoke(bearer string) {
	a.mu.Lock()
	user := a.bearers[bearer].User.ID
	delete(a.bearers, bearer)
	watchers := slices.Clone(a.watchers)
	a.mu.Unlock()
	for _, changed := range watchers {
		changed(user)
	}
}

// AllowBrowserLogin is part of Access.
func (a *fakeAccess) AllowBrowserLogin(client string) error {
	return a.AllowLogin("browser at " + client)
}

func (a *fakeAccess) AllowLogin(client string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.attempts[client]++
	if a.attempts[client] > attemptsAllowed {
		return core.Errorf(core.CodeRateLimited, "too many logins").WithRetryAfter(6 * time.Second)
	}
	return nil
}

func (a *fakeAccess) Login(_ context.Context, key string) (string, error) {
	if key != a.key {
		return "", core.Errorf(core.CodeUnauthenticated, "the key is wrong")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	token := fmt.Sprintf("cookie-%d", len(a.cookies))
	a.cookies[token] = core.Owner()
	return token, nil
}

func (a *fakeAccess) Logout(_ context.Context, token string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.cookies, token)
	return nil
}

func (a *fakeAccess) LoginProviders(context.Context) ([]string, error) {
	if !a.adapter {
		return nil, core.Errorf(core.CodeNotConfigured, "no auth adapter can log people in; set auth.adapter")
	}
	return a.several, nil
}

func (a *fakeAccess) BeginLogin(_ context.Context, provider, redirectURI, returnTo string) (access.LoginStart, error) {
	if !a.adapter {
		return access.LoginStart{}, core.Errorf(core.CodeNotConfigured, "no auth adapter can log people in; set auth.adapter")
	}
	return access.LoginStart{URL: "https://idp.example/authorize" + provider + "?redirect_uri=" + redirectURI + "&state=s1&return=" + returnTo, Binding: "b1"}, nil
}

// BackchannelLogout accepts one logout token, once.
func (a *fakeAccess) BackchannelLogout(_ context.Context, token string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, there := a.cookies["idp-cookie"]; token != "logout-of-alice" || !there {
		return core.Errorf(core.CodeBadRequest, "the logout token is not accepted")
	}
	delete(a.cookies, "idp-cookie")
	return nil
}

func (a *fakeAccess) FinishLogin(_ context.Context, in access.LoginAnswer) (string, string, error) {
	if !a.adapter {
		return "", "", core.Errorf(core.CodeNotConfigured, "no auth adapter can log people in; set auth.adapter")
	}
	if in.State != "s1" || in.Code != "c1" || in.Binding != "b1" || in.Issuer == "https://another.example" {
		return "", "", core.Errorf(core.CodeUnauthenticated, "the state is unknown")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cookies["idp-cookie"] = a.bearers["alice"]
	return "idp-cookie", "/apps?tab=1", nil
}

// fakeApps is a manager of apps without processes. What fails is set by name.
type fakeApps struct {
	uploaded       source.Request // the settings of the last upload
	uploads        int
	discardUploads bool
	mu             sync.Mutex
	apps           map[string][]core.App // by workspace
	installed      []source.Request
	asked          []string         // resource URIs
	fail           map[string]error // by operation
	resource       apps.Resource
	wait           chan struct{} // Start waits for it when not nil
	began          chan struct{} // and says here that it waits
}

func newApps() *fakeApps {
	return &fakeApps{
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

func (y *fakeApps) List(ws string) []core.App {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.apps[ws]
}

func (y *fakeApps) Health(ws string) []core.AppHealth {
	var all []core.AppHealth
	for _, a := range y.List(ws) {
		all = append(all, core.AppHealth{Name: a.Name, State: a.Status, Uptime: 1.5, RestartCount: 1})
	}
	return all
}

func (y *fakeApps) Install(_ context.Context, ws string, r source.Request) (core.App, error) {
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

func (y *fakeApps) find(operation, ws, name string) (core.App, error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if err := y.fail[operation]; err != nil {
		return core.App{}, err
	}
	for _, a := range y.apps[ws] {
		if a.Name == name {
			return a, nil
		}
	}
	return core.App{}, core.Errorf(core.CodeNotFound, "no app is named %q", name)
}

func (y *fakeApps) Uninstall(_ context.Context, ws, name string) (string, error) {
	a, err := y.find("uninstall", ws, name)
	return "/home/apps/" + a.Name, err
}

func (y *fakeApps) Start(ctx context.Context, ws, name string) (core.App, error) {
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

func (y *fakeApps) Stop(_ context.Context, ws, name string) (core.App, error) {
	a, err := y.find("stop", ws, name)
	a.Status = core.StateStopped
	return a, err
}

func (y *fakeApps) Resource(_ context.Context, ws, name, uri string) (apps.Resource, error) {
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

// fakeTools answers with what the test sets.
type fakeTools struct {
	mu     sync.Mutex
	result string
	err    error
	system string   // the result of RunSystem
	ran    []string // the calls of RunSystem
	calls  []tools.Call
	keep   []core.Caller // on purpose past the request, as a package may
	panics bool
}

func (n *fakeTools) Open(c core.Caller, o tools.SessionOptions) *tools.Session {
	return tools.New(tools.Options{Apps: silentApps{}}).Open(c, o)
}

func (n *fakeTools) EndSession(string) {}

func (n *fakeTools) CheckForm(schema, content json.RawMessage) error {
	return tools.New(tools.Options{Apps: silentApps{}}).CheckForm(schema, content)
}

// silentApps say nothing by themselves.
type silentApps struct{ tools.Apps }

func (silentApps) Listen(string, func(notify.Notification)) func() { return func() {} }

func (n *fakeTools) List(core.Caller) []tools.Listed {
	listed := func(server, name, description string) tools.Listed {
		raw := fmt.Sprintf(`{"name":"%s__%s","description":"%s","inputSchema":{"type":"object"}}`, server, name, description)
		return tools.Listed{Name: server + "__" + name, Tool: core.Tool{Server: server, Name: name}, Raw: json.RawMessage(raw)}
	}
	return []tools.Listed{listed("calc", "add", "Adds numbers"), listed("files", "read", "Reads a file"), listed("system", "status", "")}
}

// RunSystem returns what the test sets, else the tool and its arguments.
func (n *fakeTools) RunSystem(_ context.Context, c core.Caller, name string, arguments json.RawMessage) (json.RawMessage, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ran = append(n.ran, name+" "+string(arguments))
	if !c.User.OrgRole.Admin() && name != "search" {
		return nil, core.Errorf(core.CodeForbidden, "%s needs the organization role admin or owner", name)
	}
	if n.err != nil {
		return nil, n.err
	}
	return json.RawMessage(cmp.Or(n.system, "{}")), nil
}

type fakeRegistries struct{}

func (fakeRegistries) Registries() []core.Registry {
	return []core.Registry{{Name: "main", Adapter: "mcp"}}
}

func (n *fakeTools) Call(ctx context.Context, c core.Caller, call tools.Call) (json.RawMessage, error) {
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

func (y *fakeApps) Details(ws, name string) (apps.Details, error) {
	a, err := y.find("details", ws, name)
	return apps.Details{App: a, UserConfig: map[string]apps.ConfigField{}, Env: []string{}}, err
}

func (y *fakeApps) Configure(_ context.Context, ws, name string, _ apps.Settings) (core.App, error) {
	return y.find("configure", ws, name)
}

func (y *fakeApps) Restart(_ context.Context, ws, name string) (core.App, error) {
	return y.find("restart", ws, name)
}

func (y *fakeApps) Update(_ context.Context, ws, name string, r source.UpdateRequest) (core.App, error) {
	a, err := y.find("update", ws, name)
	a.Version = cmp.Or(r.Version, a.Version)
	return a, err
}

func (y *fakeApps) Logs(_ context.Context, ws, name string, tail int, _ bool) ([]apps.LogLine, <-chan apps.LogLine, error) {
	_, err := y.find("logs", ws, name)
	more := make(chan apps.LogLine)
	close(more)
	return []apps.LogLine{{Text: fmt.Sprint("last ", tail)}}, more, err
}

func (y *fakeApps) InstallUpload(_ context.Context, _ string, body io.Reader, r source.Request) (core.App, error) {
	y.uploads++
	if y.discardUploads {
		_, err := io.Copy(io.Discard, body)
		return core.App{Name: "up", Status: core.StateRunning, Type: "plain"}, err
	}
	content, err := io.ReadAll(body)
	if err == nil {
		y.uploaded = r
	}
	return core.App{Name: r.ServerName, BundleName: string(content[:min(len(content), 64)]), Status: core.StateRunning, Type: "plain"}, err
}

func (y *fakeApps) Import(_ context.Context, _ string, r source.ImportRequest) (source.ImportResult, error) {
	result := source.ImportResult{DryRun: r.DryRun, Servers: []source.ImportedServer{}}
	for name := range r.MCPServers {
		result.Servers = append(result.Servers, source.ImportedServer{Name: name, ServerName: name, Status: "planned"})
	}
	return result, nil
}

// fakePins has one change, pin_1.
type fakePins struct{}

func (*fakePins) Changes(context.Context, string) ([]core.PinChange, error) {
	return []core.PinChange{{
		ID: "pin_1", Server: "a", Tool: "b", Version: "1", State: core.PinWaiting, Since: core.Timestamp(time.Now()),
		Changes: []core.Difference{{Path: "description", Before: "x", After: "y"}},
	}}, nil
}

func (f *fakePins) Decide(ctx context.Context, c core.Caller, id string, accept bool) (core.PinChange, error) {
	all, _ := f.Changes(ctx, c.Workspace.ID)
	if id != all[0].ID {
		return core.PinChange{}, core.Errorf(core.CodeNotFound, "no such change")
	}
	all[0].State = core.PinRefused
	if accept {
		all[0].State = core.PinAccepted
	}
	return all[0], nil
}

// fakeApprovals has one call that waits, apr_1, and one that does not, apr_3.
type fakeApprovals struct{}

func (fakeApprovals) List(_ context.Context, c core.Caller) ([]core.Approval, error) {
	return []core.Approval{{
		ID: "apr_1", Tool: "a__b", Workspace: c.Workspace.ID, Caller: c.User, Arguments: json.RawMessage(`{"x":1}`), State: core.ApprovalPending,
		CreatedAt: time.Now(), ExpiresAt: time.Now().Add(time.Minute),
	}}, nil
}

func (f fakeApprovals) Decide(ctx context.Context, c core.Caller, id string, approve bool) (core.Approval, error) {
	all, _ := f.List(ctx, c)
	switch {
	case id == "apr_3":
		return core.Approval{}, core.Errorf(core.CodeAlreadyAnswered, "decided on already")
	case id != all[0].ID:
		return core.Approval{}, core.Errorf(core.CodeNotFound, "no such call")
	}
	all[0].State, all[0].DecidedBy = core.ApprovalRefused, c.User.ID
	if approve {
		all[0].State = core.ApprovalApproved
	}
	return all[0], nil
}
