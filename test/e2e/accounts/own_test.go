package accounts

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/store/seal"
	"github.com/ropewalk/ropewalk/internal/testenv"
	"github.com/ropewalk/ropewalk/internal/testkit"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// person is a user who is logged in to a server with a browser.
type person struct {
	*harness.Browser
	s      *harness.Server
	name   string
	cookie string // the session cookie as a header
}

// logIn logs a person in to a server whose identity provider shows a form for the account.
func logIn(t *testing.T, s *harness.Server, name string) person {
	t.Helper()
	b := harness.NewBrowser(t)
	b.Stop = s.URL + "/v1/auth/session"
	b.Visit(t, s.URL+"/v1/auth/authorize?returnTo=/v1/auth/session")
	b.Visit(t, b.At.String()+"?account="+name)
	cookie := b.Cookie(t, "service_session", s.URL)
	if cookie == "" {
		t.Fatalf("the login of %s ended at %s", name, b.At)
	}
	b.Stop = ""
	b.SetCookie(t, s.URL, "account", name) // the app's authorization server gets the cookie, too, because cookies ignore the port
	return person{b, s, name, "Cookie: service_session=" + cookie}
}

func (p person) do(t *testing.T, method, path string, body any) harness.Response {
	t.Helper()
	if p.cookie == "" { // without a login, every caller is the owner
		return p.s.Do(t, method, path, body)
	}
	return p.s.Do(t, method, path, body, p.cookie, "X-Workspace-Id: "+core.DefaultWorkspaceID)
}

// link links the person's account.
func (p person) link(t *testing.T) {
	t.Helper()
	begun := p.do(t, "POST", "/v1/accounts", map[string]any{"app": "far"})
	address, ok := begun.Object(t)["url"].(string)
	if !ok {
		t.Fatalf("%s: %d %s", p.name, begun.Status, begun.Body)
	}
	p.LinkAccount(t, address)
}

// listed returns the app's tools from /v1/tools, without the app's name.
func (p person) listed(t *testing.T) string {
	t.Helper()
	var list struct {
		Tools []struct{ Server, Tool string }
	}
	got := p.do(t, "GET", "/v1/tools", nil)
	if err := json.Unmarshal([]byte(got.Body), &list); err != nil || got.Status != http.StatusOK {
		t.Fatalf("%d %s", got.Status, got.Body)
	}
	var names []string
	for _, one := range list.Tools {
		if one.Server == "far" {
			names = append(names, one.Tool)
		}
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

func (p person) waitFor(t *testing.T, want string) {
	t.Helper()
	if !testkit.Within(harness.Timeout, func() bool { return p.listed(t) == want }) {
		t.Fatalf("%s: got %q, want %q", p.name, p.listed(t), want)
	}
}

// Alice is the admin. The app lists different tools to each of the three users.
func TestEachUserSeesTheToolsOfTheirOwnAccount(t *testing.T) {
	t.Parallel()
	a := harness.StartAccountApp(t, 600)
	a.Own.Store(true)
	models := testenv.StartModelProvider(t)
	port := harness.FreePort(t)
	back := "http://127.0.0.1:" + port + "/v1/auth/callback"
	idp := testenv.StartOpenIDProviderWithForm(t, back)
	s := harness.Serve(t, harness.Flags("--port", port), harness.Env("ROPEWALK_STORAGE_KEY="+seal.NewKey().Reveal()), harness.Config(
		harness.OIDCAuth(idp.Issuer, "clientId: app", "redirectUri: "+back, "organizationId: org_1")+
			harness.ModelsYAML(models, "anthropic")+"features: {toolDiscovery: true}\napps: {far: {url: \""+a.URL+"\", transport: {auth: {type: user}}}}\n"))
	alice, bob, carol := logIn(t, s, "alice"), logIn(t, s, "bob"), logIn(t, s, "carol")
	if !testkit.Within(harness.Timeout, func() bool { return strings.Contains(alice.do(t, "GET", "/v1/apps", nil).Body, `"running"`) }) {
		t.Fatalf("the app is not running: %s", alice.do(t, "GET", "/v1/apps", nil).Body)
	}

	for p, role := range map[person]core.Role{alice: core.RoleAdmin, bob: core.RoleMember, carol: core.RoleMember} {
		user, _ := p.s.Do(t, "GET", "/v1/auth/session", nil, p.cookie).Object(t)["user"].(map[string]any)
		added := alice.do(t, "POST", "/v1/tools/call", map[string]any{"server": "system", "tool": "manage_workspaces", "arguments": map[string]any{
			"action": "put_member", "workspace": core.DefaultWorkspaceID, "user": user["id"], "role": role,
		}})
		if added.Status != http.StatusOK || added.Object(t)["isError"] == true {
			t.Fatalf("%s cannot enter the workspace: %d %s", p.name, added.Status, added.Body)
		}
	}

	bob.link(t)
	bob.waitFor(t, "of_bob whoami")
	if got := carol.listed(t); got != "" {
		t.Errorf("without an account, carol sees %q, although no admin has linked one", got)
	}
	alice.link(t)
	alice.waitFor(t, "change whoami")
	carol.waitFor(t, "change whoami")
	bob.waitFor(t, "of_bob whoami")
	before := bob.do(t, "GET", "/v1/tools", nil).Body

	call := func(p person, tool string) harness.Response {
		return p.do(t, "POST", "/v1/tools/call", map[string]any{"tool": tool})
	}
	for _, c := range []struct {
		who    person
		tool   string
		status int
		says   string
	}{
		{bob, "far__of_bob", 200, `"bob"`},
		{bob, "far_main__of_bob", 200, `"bob"`},
		{bob, "far__whoami", 200, `"bob"`},
		{bob, "far__change", 404, "tool_not_found"},
		{bob, "far_main__change", 404, "tool_not_found"},
		{alice, "far__change", 200, `"alice"`},
		{alice, "far__of_bob", 404, "tool_not_found"},
		{carol, "far__change", 409, "login_needed"},
		{carol, "far__of_bob", 404, "tool_not_found"},
	} {
		if got := call(c.who, c.tool); got.Status != c.status || !strings.Contains(got.Body, c.says) {
			t.Errorf("%s calls %s: %d %s", c.who.name, c.tool, got.Status, got.Body)
		}
	}
	for _, c := range []struct {
		who  person
		path string
		says bool
	}{
		{bob, "/v1/tools?search=of_bob", true}, {alice, "/v1/tools?search=of_bob", false},
	} {
		if got := c.who.do(t, "GET", c.path, nil); strings.Contains(got.Body, "of_bob") != c.says {
			t.Errorf("%s searches: %d %s", c.who.name, got.Status, got.Body)
		}
		found := c.who.do(t, "POST", "/v1/tools/call", map[string]any{"server": "system", "tool": "search_tools", "arguments": map[string]any{"query": "of bob"}})
		if strings.Contains(found.Body, "far__of_bob") != c.says {
			t.Errorf("%s searches with a tool: %d %s", c.who.name, found.Status, found.Body)
		}
		made := c.who.do(t, "POST", "/v1/keys", map[string]any{"name": "k", "accounts": true})
		key, _ := made.Object(t)["key"].(string)
		listed, err := json.Marshal(s.Stateless(t, "tools/list", "", `{}`, nil, "Authorization: Bearer "+key))
		if err != nil || strings.Contains(string(listed), "far__of_bob") != c.says || !strings.Contains(string(listed), "far__whoami") {
			t.Errorf("%s lists with a key (%d): %s", c.who.name, made.Status, listed)
		}
		harness.ScriptToolCall(t, models, "far__of_bob", `{}`)
		output := c.who.do(t, "POST", "/v1/chat/stream", map[string]any{"message": "go"})
		if strings.Contains(output.Body, `"output":"bob"`) != c.says || output.Status != http.StatusOK {
			t.Errorf("%s chats: %d %s", c.who.name, output.Status, output.Body)
		}
	}

	// Carol's account gets a different description of whoami. The tool is held back only for her, until Alice accepts
	// the description.
	carol.link(t)
	if !testkit.Within(harness.Timeout, func() bool { return strings.Contains(call(carol, "far__whoami").Body, "tool_held") }) {
		t.Errorf("carol calls: %s", call(carol, "far__whoami").Body)
	}
	for _, p := range []person{alice, bob} {
		if got := call(p, "far__whoami"); got.Status != 200 {
			t.Errorf("%s calls: %d %s", p.name, got.Status, got.Body)
		}
	}
	var pins struct {
		Pins []struct{ ID, Tool, Account string }
	}
	raw := alice.do(t, "GET", "/v1/pins", nil)
	if err := json.Unmarshal([]byte(raw.Body), &pins); err != nil || len(pins.Pins) != 1 || pins.Pins[0].Tool != "whoami" || !strings.HasPrefix(pins.Pins[0].Account, "acc_") {
		t.Fatalf("the changes that alice sees: %s", raw.Body)
	}
	if got := alice.do(t, "POST", "/v1/pins/"+pins.Pins[0].ID, map[string]any{"decision": "accept"}); got.Status != 200 {
		t.Fatalf("%d %s", got.Status, got.Body)
	}
	if got := call(carol, "far__whoami"); got.Status != 200 || !strings.Contains(got.Body, "carol") {
		t.Errorf("after alice accepted the change, carol calls: %d %s", got.Status, got.Body)
	}
	if got := call(bob, "far__whoami"); got.Status != 200 {
		t.Errorf("after alice accepted the change, bob calls: %d %s", got.Status, got.Body)
	}

	s.Stop()
	s.Start()
	s.WaitForStatus(t, "far", "running", alice.cookie)
	bob.waitFor(t, "of_bob whoami")
	if after := bob.do(t, "GET", "/v1/tools", nil).Body; after != before {
		t.Errorf("after a restart bob sees\n%s\nwant\n%s", after, before)
	}
	carol.waitFor(t, "whoami")
}

func TestACallUsesTheAccountForWhichTheToolWasListed(t *testing.T) {
	t.Parallel()
	a := harness.StartAccountApp(t, 600)
	a.Own.Store(true)
	s := serve(t, a)
	for name, who := range map[string]string{"work": "alice", "home": "bob"} {
		b := harness.NewBrowser(t)
		b.SetCookie(t, s.URL, "account", who)
		link(t, s, b, name)
	}
	me := person{s: s, name: "the owner"}
	me.waitFor(t, "change of_bob whoami")
	for _, c := range []struct {
		tool   string
		status int
		says   string
	}{
		{"far__change", 200, `"alice"`}, {"far_work__change", 200, `"alice"`}, {"far_home__change", 404, "tool_not_found"},
		{"far__of_bob", 200, `"bob"`}, {"far_home__of_bob", 200, `"bob"`}, {"far_work__of_bob", 404, "tool_not_found"},
		{"far_work__whoami", 200, `"alice"`}, {"far_home__whoami", 200, `"bob"`}, {"far_other__whoami", 409, "login_needed"},
	} {
		if got := s.Do(t, "POST", "/v1/tools/call", map[string]any{"tool": c.tool}); got.Status != c.status || !strings.Contains(got.Body, c.says) {
			t.Errorf("%s: %d %s", c.tool, got.Status, got.Body)
		}
	}
}
