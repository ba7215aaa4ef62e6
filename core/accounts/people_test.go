package accounts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps"
	"github.com/ropewalk/ropewalk/core/apps/source"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/link/remote"
	"github.com/ropewalk/ropewalk/core/store"
	"github.com/ropewalk/ropewalk/core/tools"
	"github.com/ropewalk/ropewalk/internal/chaos"
	"github.com/ropewalk/ropewalk/internal/testkit"
)

// world is everything between a caller and remote apps: the tools of a workspace, its apps and its accounts.
type world struct {
	*rig
	tools     *tools.Namespace
	apps      *apps.Manager
	providers map[string]*provider // by app
	described bool                 // the description of the tool names the grant
	bearers   atomic.Int64         // requests to apps that contain the bearer of a caller

	mu     sync.Mutex
	owners map[string]string // "person/label" by app and grant
}

const callerBearer = "canary-bearer-of-" // followed by the person's name

// newWorld installs one app for each kind of auth.
func newWorld(t *testing.T, auths map[string]string) *world {
	t.Helper()
	s := newStore(t)
	w := &world{rig: &rig{store: s, events: make(chan core.Event, 1)}, providers: map[string]*provider{}, owners: map[string]string{}}
	w.Manager = New(Options{Store: s, Events: w.rig, URL: func() string { return "http://127.0.0.1:1" }})
	w.apps = apps.New(apps.Options{Home: t.TempDir(), Records: s, Events: w.rig, Logger: hclog.NewNullLogger(), Remote: remote.Options{AllowPrivate: true}, Accounts: w.Manager})
	t.Cleanup(func() {
		if err := w.apps.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	w.SetApps(w.apps)
	w.tools = tools.New(tools.Options{Apps: w.apps, Events: w.rig, Features: config.Features{}, Logger: hclog.NewNullLogger(), Accounts: w.Manager})
	for name, auth := range auths {
		p := newProvider(t)
		p.change(func(p *provider) { p.fail = w.serves(name) })
		w.providers[name] = p
		request := source.Request{URL: p.URL + "/mcp", ServerName: name, AllowPrivate: true, Transport: &source.Transport{Auth: &source.Auth{Type: auth}}}
		if _, err := w.apps.Install(t.Context(), core.DefaultWorkspaceID, request); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// serves makes the app of a provider an MCP server with the tool whoami, which returns the app and the grant of the
// call's token.
func (w *world) serves(app string) func(http.ResponseWriter, *http.Request) bool {
	return func(out http.ResponseWriter, r *http.Request) bool {
		body, err := io.ReadAll(r.Body)
		if strings.Contains(fmt.Sprint(r.Header, r.URL, r.PostForm)+string(body), callerBearer) {
			w.bearers.Add(1)
		}
		token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer access-")
		if r.URL.Path != "/mcp" || !ok || err != nil {
			return false
		}
		var message struct {
			ID     json.RawMessage
			Method string
			Params struct{ ProtocolVersion string }
		}
		switch {
		case r.Method != http.MethodPost || json.Unmarshal(body, &message) != nil:
			out.WriteHeader(http.StatusMethodNotAllowed)
			return true
		case message.ID == nil:
			out.WriteHeader(http.StatusAccepted)
			return true
		}
		grant, _, _ := strings.Cut(token, "-")
		description := ""
		if w.described {
			description = "of " + grant
		}
		result := `{}`
		switch message.Method {
		case "initialize":
			result = fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{"tools":{}},"serverInfo":{"name":"far","version":"1"}}`, message.Params.ProtocolVersion)
		case "tools/list":
			result = fmt.Sprintf(`{"tools":[{"name":"whoami","description":%q,"inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}`, description)
		case "tools/call":
			result = fmt.Sprintf(`{"content":[{"type":"text","text":%q}]}`, app+" "+grant)
		}
		out.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":%s}`, message.ID, result)
		return true
	}
}

// linkAt links an account, and remembers the owner of its grant.
func (w *world) linkAt(ctx context.Context, t *testing.T, c core.Caller, app, name, owner string) error {
	want := Want{App: app, Name: name}
	consent, err := w.Prepare(ctx, c, want)
	if err != nil {
		return err
	}
	want.Agreed = consent.Digest()
	start, err := w.Begin(ctx, c, want, callback)
	if err != nil {
		return err
	}
	response := w.providers[app].consent(t, start.URL)
	response.Binding = start.Binding
	a, again, err := w.Finish(ctx, as(c), response)
	if err != nil || again.URL != "" {
		return errors.Join(err, fmt.Errorf("linked %q", a.ID))
	}
	grant, _, _ := strings.Cut(strings.TrimPrefix(a.Grant.AccessToken.Reveal(), "access-"), "-")
	w.mu.Lock()
	defer w.mu.Unlock()
	w.owners[app+" "+grant] = owner
	return nil
}

// whoami calls the tool of that name, and returns what the app saw.
func (w *world) whoami(ctx context.Context, c core.Caller, server string) (string, error) {
	raw, failed, err := w.tools.Call(ctx, c, tools.Call{Name: server + "__whoami"})
	if err != nil || failed {
		return "", errors.Join(err, fmt.Errorf("the tool failed: %v", failed))
	}
	var result struct{ Content []struct{ Text string } }
	if err := json.Unmarshal(raw, &result); err != nil || len(result.Content) != 1 {
		return "", fmt.Errorf("result %s: %w", raw, err)
	}
	return result.Content[0].Text, nil
}

// personWithBearer returns a person who calls with their own bearer.
func (w *world) personWithBearer(t *testing.T, name string) core.Caller {
	t.Helper()
	c := w.person(t, name)
	c.Bearer = core.Secret(callerBearer + name)
	return c
}

// For each app, each person has two permanent accounts, a (the default) and b, and one that is linked, renamed
// between c and d, and unlinked all the time. Every call names an account or none, and the app says which grant it
// was made with.
func TestNoCallUsesTheAccountOfAnotherUserOrName(t *testing.T) {
	auths := map[string]string{}
	for i := range appsOfPeople {
		auths[fmt.Sprintf("app%d", i)] = core.AuthUser
	}
	w := newWorld(t, auths)
	var persons []core.Caller
	for i := range people {
		c := w.personWithBearer(t, fmt.Sprintf("p%d", i))
		persons = append(persons, c)
		for app := range auths {
			for _, label := range []string{"a", "b", "c"} {
				if err := w.linkAt(t.Context(), t, c, app, label, fmt.Sprintf("p%d/%s", i, label)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for i, c := range persons {
		for app := range auths {
			for _, name := range []string{"_a", "_b"} {
				testkit.Eventually(t, fmt.Sprintf("the app has listed its tool to p%d, %s%s", i, app, name), func() bool {
					_, err := w.whoami(t.Context(), c, app+name)
					return err == nil
				})
			}
		}
	}

	calling, done := context.WithCancel(t.Context())
	var changing, calls sync.WaitGroup
	var changes, refused atomic.Int64
	for i, c := range persons {
		changing.Go(func() {
			for n := 0; calling.Err() == nil; n++ {
				if err := w.changeThird(t, c, fmt.Sprintf("app%d", n%appsOfPeople), fmt.Sprintf("p%d/c", i)); err != nil {
					t.Errorf("p%d: %v", i, err)
					return
				}
				changes.Add(1)
			}
		})
	}
	type outcome struct{ app, owner, got string }
	outcomes := make([][]outcome, people)
	for i, c := range persons {
		calls.Go(func() {
			for n := range callsOfPeople / people {
				app := fmt.Sprintf("app%d", n%appsOfPeople)
				name := []string{"_a", "_b", "_c", "_d", ""}[n/appsOfPeople%5]
				owner := fmt.Sprintf("p%d/%s", i, map[string]string{"_a": "a", "_b": "b", "_c": "c", "_d": "c", "": "a"}[name])
				got, err := w.whoami(t.Context(), c, app+name)
				switch {
				case err == nil:
					outcomes[i] = append(outcomes[i], outcome{app, owner, got})
				case strings.HasSuffix(owner, "/c"): // it is linked under the other name, or unlinked
					refused.Add(1)
				default:
					t.Errorf("%s%s by p%d: %v", app, name, i, err)
				}
			}
		})
	}
	calls.Wait()
	done()
	changing.Wait()
	answered, wrong := 0, 0
	for _, one := range slices.Concat(outcomes...) {
		answered++
		if owner := w.owners[one.got]; owner != one.owner || !strings.HasPrefix(one.got, one.app+" ") {
			wrong++
			t.Errorf("a call to %s with the account of %s used %s, which belongs to %s", one.app, one.owner, one.got, owner)
		}
	}
	if n := w.bearers.Load(); n > 0 {
		t.Errorf("%d requests had the bearer of their caller", n)
	}
	if answered+int(refused.Load()) != callsOfPeople || answered < callsOfPeople/2 || changes.Load() == 0 {
		t.Errorf("%d results and %d refusals for %d calls, during %d changes", answered, refused.Load(), callsOfPeople, changes.Load())
	}
	chaos.Record(t, chaos.Row{
		Number: "A call by one of many people", Required: "0 with another account, 0 with the bearer",
		Done:   fmt.Sprintf("%d calls by %d people over %d apps with 2 accounts each, during %d changes of a third (%d calls found it gone)", callsOfPeople, people, appsOfPeople, changes.Load(), refused.Load()),
		Figure: fmt.Sprintf("%d with another account, %d with the bearer", wrong, w.bearers.Load()), OK: !t.Failed(),
	})
}

// changeThird renames the account c of a person to d and back, unlinks it and links it again.
func (w *world) changeThird(t *testing.T, c core.Caller, app, owner string) error {
	ctx := t.Context()
	own, err := w.of(ctx, c.Workspace.ID, c.User.ID, app)
	a, ok := pick(own, "c")
	if err != nil || !ok {
		return fmt.Errorf("there is no account c at %s: %w", app, err)
	}
	for _, name := range []string{"d", "c"} {
		if _, err := w.Change(ctx, c, a.ID, core.AccountChange{Name: &name}); err != nil {
			return err
		}
	}
	if err := w.Unlink(ctx, c, a.ID); err != nil {
		return err
	}
	return w.linkAt(ctx, t, c, app, "c", owner)
}

func TestAChangedDefaultAccountIsAnnouncedWithItsLists(t *testing.T) {
	w := newWorld(t, map[string]string{"app": core.AuthUser})
	w.described = true
	c := w.personWithBearer(t, "alice")
	descriptions := map[string]string{}
	for _, name := range []string{"a", "b"} {
		if err := w.linkAt(t.Context(), t, c, "app", name, name); err != nil {
			t.Fatal(err)
		}
		var got string
		testkit.Eventually(t, "the account's tool can be called", func() (ok bool) {
			var err error
			got, err = w.whoami(t.Context(), c, "app_"+name)
			return err == nil
		})
		_, grant, _ := strings.Cut(got, " ")
		descriptions[name] = `"of ` + grant + `"`
		testkit.Eventually(t, "what the account sees is known", func() bool {
			one := w.Offer(c, "app", name, w.apps.Offer(core.DefaultWorkspaceID, nil))
			return len(one.Tools) == 1 && strings.Contains(string(one.Tools[0].Raw), descriptions[name])
		})
	}
	lists := func(name string) bool {
		all := w.tools.List(c)
		return len(all) == 1 && strings.Contains(string(all[0].Raw), descriptions[name])
	}
	if !lists("a") {
		t.Errorf("the first account is not the default: %+v", w.tools.List(c))
	}
	var announced atomic.Int64
	defer w.tools.Watch(core.DefaultWorkspaceID, func() {
		if lists("b") {
			announced.Add(1)
		}
	})()
	own, err := w.of(t.Context(), core.DefaultWorkspaceID, c.User.ID, "app")
	b, ok := pick(own, "b")
	if err != nil || !ok {
		t.Fatalf("%+v %v", own, err)
	}
	if _, err := w.Change(t.Context(), c, b.ID, core.AccountChange{Default: true}); err != nil || announced.Load() == 0 || !lists("b") {
		t.Errorf("announced %d times, with %+v: %v", announced.Load(), w.tools.List(c), err)
	}
}

// Calls with the two kinds of accounts alternate, so that other load on the machine slows down both equally.
func TestAPersonalAccountCostsNoMoreThanASharedOne(t *testing.T) {
	w := newWorld(t, map[string]string{"mine": core.AuthUser, "ours": core.AuthShared})
	c := w.personWithBearer(t, "admin")
	c.Workspace.Role = core.RoleAdmin
	kinds := []string{"mine", "ours"}
	for _, app := range kinds {
		if err := w.linkAt(t.Context(), t, c, app, DefaultName, "admin/main"); err != nil {
			t.Fatal(err)
		}
	}
	testkit.Eventually(t, "the tools of both apps are listed", func() bool { return len(w.tools.List(c)) == 2 })
	took := map[string][]time.Duration{}
	for n := range costPairs {
		for i := range kinds {
			app := kinds[(i+n)%2]
			began := time.Now()
			if _, err := w.whoami(t.Context(), c, app); err != nil {
				t.Fatal(err)
			}
			took[app] = append(took[app], time.Since(began))
		}
	}
	median := func(app string) time.Duration {
		slices.Sort(took[app])
		return took[app][costPairs/2]
	}
	mine, ours := median("mine"), median("ours")
	more := 100 * (float64(mine)/float64(ours) - 1)
	chaos.Record(t, chaos.Row{
		Number: "Cost of a call with a person's own account", Required: "at most 5% more", OK: more <= 5,
		Done:   fmt.Sprintf("%d pairs of calls, medians", costPairs),
		Figure: fmt.Sprintf("%v, and %v with a shared account: %+.1f %%", mine, ours, more),
	})
}

// The authorization server is unreachable while a person keeps calling and tokens live for four seconds.
func TestARealOutageOfAProviderLosesNoGrant(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	p := idleProvider("http://" + address)
	p.life = 4
	start := func(l net.Listener) *httptest.Server {
		s := &httptest.Server{Listener: l, Config: &http.Server{Handler: p}} //nolint:gosec // of a test
		s.Start()
		return s
	}
	running := start(listener)
	defer func() { running.Close() }()
	r := newRig(t, p, core.RemoteAuth{Type: core.AuthUser})
	a := r.link(t, p, r.caller, "")
	r.eventNames()
	running.Close()
	failed, calls := 0, 0
	for began := time.Now(); time.Since(began) < outage; calls++ {
		_, err := r.Authorizer(a.ID).Token(t.Context(), "")
		if err != nil {
			failed++
		}
		if err != nil && core.CodeOf(err) != core.CodeUnavailable {
			t.Fatalf("during the outage: %v", err)
		}
		<-time.After(100 * time.Millisecond)
	}
	testkit.Eventually(t, "its address is free", func() bool { // another connection may happen to use its port for a while
		listener, err = net.Listen("tcp", address)
		return err == nil
	})
	running = start(listener)
	testkit.Eventually(t, "calls work again", func() bool {
		_, err := r.Authorizer(a.ID).Token(t.Context(), "")
		return err == nil
	})
	now, err := r.store.Account(t.Context(), a.ID)
	lost := 1 - len(p.current)
	if err != nil || now.State != core.AccountActive || lost != 0 || failed == 0 {
		t.Errorf("the account is %s after %d failed calls, with %d grants: %v", now.State, failed, len(p.current), err)
	}
	if names := r.eventNames(); len(names) > 0 {
		t.Errorf("events: %v", names)
	}
	chaos.Record(t, chaos.Row{
		Number: "An authorization server that is down", Required: "0 lost grants, 0 logins asked for", OK: !t.Failed(),
		Done:   fmt.Sprintf("%v without it, %d calls, %d of them after the token had expired", outage, calls, failed),
		Figure: fmt.Sprintf("%d lost grants, account %s", lost, now.State),
	})
}

func TestOnlyAnAdminPublishesTheListsOfAnApp(t *testing.T) {
	p := newProvider(t)
	r := newRig(t, p, core.RemoteAuth{Type: core.AuthUser})
	admin := r.person(t, "admin")
	if err := r.store.PutMember(t.Context(), core.DefaultWorkspaceID, admin.User.ID, core.RoleAdmin); err != nil {
		t.Fatal(err)
	}
	accounts := map[string]core.Account{"member": r.link(t, p, r.caller, ""), "admin": r.link(t, p, admin, "")}
	for _, c := range []struct {
		who, version, published string
	}{{"member", "1", ""}, {"admin", "2", "2"}, {"member", "3", "2"}, {"admin", "4", "4"}} {
		_, err := r.Manager.Publish(t.Context(), accounts[c.who].ID, core.AppLists{Version: c.version})
		if lists, failed := r.Published(t.Context(), core.DefaultWorkspaceID, "far"); err != nil || failed != nil || lists.Version != c.published {
			t.Errorf("after %s, who saw %s, everyone sees %q: %v %v", c.who, c.version, lists.Version, err, failed)
		}
		if own, err := r.Listed(t.Context(), core.DefaultWorkspaceID, "far", ""); err != nil || own[accounts[c.who].ID].Version != c.version {
			t.Errorf("%s saw %s: %+v: %v", c.who, c.version, own, err)
		}
	}
}

// slowStore counts reads of a workspace's accounts, and delays them.
type slowStore struct {
	*store.Store
	reads atomic.Int64
	hold  chan struct{} // reads wait until it is closed
}

func (s *slowStore) Accounts(ctx context.Context, workspace string) ([]core.Account, error) {
	s.reads.Add(1)
	<-s.hold
	return s.Store.Accounts(ctx, workspace)
}

func TestListingToolsWaitsForTheStoreOnlyOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, idleProvider("http://127.0.0.1:2"), core.RemoteAuth{Type: core.AuthUser})
		slow := &slowStore{Store: r.store, hold: make(chan struct{})}
		r.Manager = New(Options{Store: slow, Events: r})
		r.SetApps(r)
		list := func(name string, reads int64) {
			t.Helper()
			shared, began := &core.Offer{}, time.Now()
			offer := r.Offer(r.caller, "", "", shared)
			synctest.Wait()
			if offer != shared || time.Since(began) > 0 || slow.reads.Load() != reads {
				t.Errorf("%s: after %v and %d reads", name, time.Since(began), slow.reads.Load())
			}
		}
		r.unused = true
		list("no app uses accounts", 0)
		r.unused = false
		close(slow.hold)
		list("the first list", 1)
		slow.hold = make(chan struct{})
		time.Sleep(cacheLife + time.Second) //nolint:forbidigo // of the bubble
		list("the store hangs", 2)
		close(slow.hold)
		synctest.Wait()
		list("the store is back", 2)
	})
}
