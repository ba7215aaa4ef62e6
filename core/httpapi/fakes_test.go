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
	"github.com/ropewalk/ropewalk/core/apps"
	"github.com/ropewalk/ropewalk/core/apps/source"
	"github.com/ropewalk/ropewalk/core/tools"
	"github.com/ropewalk/ropewalk/core/tools/view"
)

// fakeApps is an app manager without processes. fail sets the error of each operation.
type fakeApps struct {
	decided        []core.PermissionChange
	hints          []string
	uploaded       source.Request // the settings of the last upload
	uploads        int
	discardUploads bool
	mu             sync.Mutex
	apps           map[string][]core.App // by workspace
	installed      []source.Request
	asked          []string         // resource URIs
	fail           map[string]error // by operation
	resource       apps.Resource
	wait           chan struct{} // Start blocks on this channel if it is not nil
	began          chan struct{} // receives a value when Start is waiting
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

func (n *fakeTools) ReadView(_ context.Context, c core.Caller, name, uri string) (apps.Resource, error) {
	y := n.apps
	if _, err := y.find("resource", c.Workspace.ID, name); err != nil {
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

// fakeTools returns the results that the test sets.
type fakeTools struct {
	mu     sync.Mutex
	result string
	err    error
	calls  []tools.Call
	keep   []core.Caller // kept after the request on purpose, because packages may do so
	panics bool
	apps   *fakeApps // the apps whose views are read
	shows  func(core.Caller) bool
}

func (n *fakeTools) Open(c core.Caller, o tools.SessionOptions) *tools.Session {
	return tools.New(tools.Options{Apps: silentApps{}}).Open(c, o)
}

func (n *fakeTools) EndSession(string) {}

func (n *fakeTools) ShowsTool(core.Caller, string, ...string) bool { return true }

func (n *fakeTools) ShowsEvent(c core.Caller, _ json.RawMessage) bool {
	return n.shows == nil || n.shows(c)
}

func (n *fakeTools) CheckForm(schema, content json.RawMessage) error {
	return tools.New(tools.Options{Apps: silentApps{}}).CheckForm(schema, content)
}

// silentApps never sends notifications.
type silentApps struct{ tools.Apps }

func (silentApps) Listen(string, func(apps.Notification)) func() { return func() {} }

func (n *fakeTools) ListFor(c core.Caller, _ tools.From) []tools.Listed { return n.List(c) }

func (n *fakeTools) FitText(_ context.Context, _ core.Caller, _, text string) string { return text }

func (n *fakeTools) List(core.Caller) []tools.Listed {
	listed := func(server, name, description string) tools.Listed {
		raw := fmt.Sprintf(`{"name":"%s__%s","description":"%s","inputSchema":{"type":"object"}}`, server, name, description)
		return tools.Listed{Name: server + "__" + name, Tool: core.Tool{Server: server, Name: name}, Raw: json.RawMessage(raw)}
	}
	return []tools.Listed{listed("calc", "add", "Adds numbers"), listed("files", "read", "Reads a file"), listed("system", "status", "")}
}

// fakeViews is a Views without any views.
type fakeViews struct{}

func (fakeViews) Has(string, string) bool { return false }

func (fakeViews) List(string) []view.Info { return []view.Info{} }

func (fakeViews) Set(_ context.Context, _ string, d core.View) (view.Info, error) {
	return view.Info{View: d}, nil
}

func (fakeViews) Remove(context.Context, string, string) error {
	return core.Errorf(core.CodeNotFound, "no view")
}

type fakeRegistries struct{}

func (fakeRegistries) Registries() []core.Registry {
	return []core.Registry{{Name: "main", Adapter: "mcp"}}
}

func (fakeRegistries) SearchBundles(_ context.Context, q tools.BundleQuery) ([]tools.Found, []string, error) {
	return []tools.Found{{Registry: q.Registry, Name: q.Text, Version: fmt.Sprint(q.Limit), TrustScore: 5}}, []string{}, nil
}

// allFeatures has every feature on except the named ones.
type allFeatures []string

func (off allFeatures) Enabled(flag string) bool { return !slices.Contains(off, flag) }

func (n *fakeTools) Called(call tools.Call) string { return call.Name }

func (n *fakeTools) Call(ctx context.Context, c core.Caller, call tools.Call) (_ json.RawMessage, failed bool, _ error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.panics {
		panic("tool path")
	}
	n.calls, n.keep = append(n.calls, call), append(n.keep, c)
	if ctx.Err() != nil {
		return nil, false, ctx.Err()
	}
	if n.err != nil {
		return nil, false, n.err
	}
	if n.result == "" {
		return json.RawMessage(`{"content":[{"type":"text","text":"ok"}]}`), false, nil
	}
	return json.RawMessage(n.result), false, nil
}

func (y *fakeApps) Details(ws, name string) (apps.Details, error) {
	a, err := y.find("details", ws, name)
	return apps.Details{App: a, UserConfig: map[string]apps.ConfigField{}, Env: []string{}}, err
}

func (y *fakeApps) Configure(_ context.Context, ws, name string, _ apps.Settings) (core.App, error) {
	return y.find("configure", ws, name)
}

func (y *fakeApps) Restore(_ context.Context, ws, name string) (core.App, error) {
	return y.find("restore", ws, name)
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

func (y *fakeApps) Permissions(c core.Caller, name string) (apps.Permissions, error) {
	app, err := y.find("permissions", c.Workspace.ID, name)
	return apps.Permissions{Name: app.Name}, err
}

func (y *fakeApps) ChangePermissions(_ context.Context, c core.Caller, name string, change core.PermissionChange) (apps.Permissions, error) {
	app, err := y.find("permissions", c.Workspace.ID, name)
	y.decided = append(y.decided, change)
	return apps.Permissions{Name: app.Name}, err
}

func (y *fakeApps) TracePermissions(_ context.Context, c core.Caller, name string, _ time.Duration) (apps.Permissions, error) {
	return y.Permissions(c, name)
}

func (y *fakeApps) MissingPermissions(core.Caller, string) *core.AppPermissions { return nil }

func (y *fakeApps) Hints(core.Caller, string) []string { return y.hints }

func (y *fakeApps) Import(_ context.Context, _ string, r source.ImportRequest) (source.ImportResult, error) {
	result := source.ImportResult{DryRun: r.DryRun, Servers: []source.ImportedServer{}}
	for name := range r.MCPServers {
		result.Servers = append(result.Servers, source.ImportedServer{Name: name, ServerName: name, Status: "planned"})
	}
	return result, nil
}

// fakePins has one pending change, pin_1.
type fakePins struct{}

func (*fakePins) Changes(context.Context, core.Caller) ([]core.PinChange, error) {
	return []core.PinChange{{
		ID: "pin_1", Server: "a", Tool: "b", Version: "1", State: core.PinWaiting, Since: core.Timestamp(time.Now()),
		Changes: []core.Difference{{Path: "description", Before: "x", After: "y"}},
	}}, nil
}

func (f *fakePins) Decide(ctx context.Context, c core.Caller, id string, accept bool) (core.PinChange, error) {
	all, _ := f.Changes(ctx, c)
	if id != all[0].ID {
		return core.PinChange{}, core.Errorf(core.CodeNotFound, "no such change")
	}
	all[0].State = core.PinRefused
	if accept {
		all[0].State = core.PinAccepted
	}
	return all[0], nil
}

// fakeApprovals has one pending call, apr_1, and one that has been decided, apr_3.
type fakeApprovals struct{}

func (fakeApprovals) List(_ context.Context, c core.Caller, q core.ApprovalQuery) (core.ApprovalPage, error) {
	one := core.Approval{
		ID: "apr_1", Tool: "a__b", Workspace: c.Workspace.ID, Caller: c.User, Arguments: json.RawMessage(`{"x":1}`), State: core.ApprovalPending,
		CreatedAt: time.Now(), ExpiresAt: time.Now().Add(time.Minute),
	}
	page := core.ApprovalPage{Approvals: []core.Approval{one}}
	if q.Decided {
		one.State, one.DecidedBy, one.DecidedAt, one.Reason = core.ApprovalRefused, c.User, time.Now(), "not today"
		page = core.ApprovalPage{Approvals: []core.Approval{one}, NextCursor: "next"}
	}
	return page, nil
}

func (f fakeApprovals) Decide(ctx context.Context, c core.Caller, id string, d core.Decision) (core.Approval, error) {
	page, _ := f.List(ctx, c, core.ApprovalQuery{})
	all := page.Approvals
	switch {
	case id == "apr_3":
		return core.Approval{}, core.Errorf(core.CodeAlreadyAnswered, "already decided")
	case id != all[0].ID:
		return core.Approval{}, core.Errorf(core.CodeNotFound, "no such call")
	}
	all[0].State, all[0].DecidedBy, all[0].DecidedAt, all[0].Reason = core.ApprovalRefused, c.User, time.Now(), d.Reason
	if d.Approve {
		all[0].State = core.ApprovalApproved
	}
	return all[0], nil
}

// standing returns the standing approval sta_1.
func standing() core.StandingApproval {
	return core.StandingApproval{ID: "sta_1", Tool: "a__b", By: core.User{ID: "usr_a"}, Since: time.Now()}
}

func (fakeApprovals) Standing(context.Context, core.Caller) ([]core.StandingApproval, error) {
	return []core.StandingApproval{standing()}, nil
}

func (fakeApprovals) Withdraw(_ context.Context, _ core.Caller, id string) (core.StandingApproval, error) {
	if id != "sta_1" {
		return core.StandingApproval{}, core.Errorf(core.CodeNotFound, "no such approval")
	}
	return standing(), nil
}
