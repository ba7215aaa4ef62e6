package e2e

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testenv"
)

// A person who logs in is one person on all servers: the provider may send the browser to another
// one than it came from, and what becomes of the person on one counts on the others.
func TestAPersonIsTheSameOnAllServers(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	back := "http://127.0.0.1:" + port + "/v1/auth/callback"
	provider := testenv.StartOpenIDProvider(t, back)
	database := databases.New(t)
	share := []with{
		func(s *server) { s.database = database },
		config(oidcAuth(provider.Issuer, "clientId: app", "redirectUri: "+back, "organizationId: org_1") + "storage: {url: '" + database + "'}\n"),
		env("SERVICE_API_KEY=" + apiKey),
	}
	a, b := serve(t, append(share, flag("--port", port))...), serve(t, share...)
	const owner = "Authorization: Bearer " + apiKey

	alice := newBrowser(t) // cookies do not know ports: to her both are one site
	alice.stop = a.url + "/v1/auth/session"
	if done := alice.visit(t, b.url+"/v1/auth/authorize?returnTo=/v1/auth/session"); done.StatusCode != http.StatusFound || alice.at.String() != alice.stop {
		t.Fatalf("begun on one server, the login ended on the other with %d at %s", done.StatusCode, alice.at)
	}
	session := "Cookie: service_session=" + alice.cookie(t, "service_session", a.url)
	who := b.do(t, "GET", "/v1/auth/session", nil, session)
	if who.status != http.StatusOK || !strings.Contains(who.body, `"alice@example.com"`) {
		t.Fatalf("the session on the server where it began: %d %s", who.status, who.body)
	}
	id := who.object(t)["user"].(map[string]any)["id"]

	manage := func(s *server, tool string, arguments map[string]any) map[string]any {
		t.Helper()
		got := s.do(t, "POST", "/v1/tools/call", map[string]any{"server": "system", "tool": tool, "arguments": arguments}, owner)
		result, ok := got.object(t)["result"].(map[string]any)
		if got.status != http.StatusOK || !ok {
			t.Fatalf("%s %v: %d %s", tool, arguments, got.status, got.body)
		}
		return result
	}
	crew := manage(a, "manage_workspaces", map[string]any{"action": "create", "name": "Crew"})["workspace"].(map[string]any)["id"].(string)
	enters := func(s *server) int { return s.do(t, "GET", "/v1/apps", nil, session, "X-Workspace-Id: "+crew).status }
	if got := enters(b); got != http.StatusForbidden { // and this is remembered
		t.Fatalf("a stranger enters the workspace: %d", got)
	}
	manage(a, "manage_workspaces", map[string]any{"action": "put_member", "workspace": crew, "user": id})
	soon(t, "a new member enters on the other server", func() bool { return enters(b) == http.StatusOK })
	manage(a, "manage_workspaces", map[string]any{"action": "remove_member", "workspace": crew, "user": id})
	soon(t, "one who was removed does not", func() bool { return enters(b) == http.StatusForbidden })

	role := func() (got struct{ User struct{ OrgRole string } }) {
		_ = json.Unmarshal([]byte(b.do(t, "GET", "/v1/auth/session", nil, session).body), &got)
		return got
	}
	if role().User.OrgRole != "admin" {
		t.Fatalf("at first she is %+v", role())
	}
	manage(a, "manage_users", map[string]any{"action": "set_role", "user": id, "role": "member"})
	soon(t, "a role counts on the other server", func() bool { return role().User.OrgRole == "member" })
	if got := a.do(t, "POST", "/v1/auth/logout", `{}`, session); got.status != http.StatusOK {
		t.Errorf("logout: %d %s", got.status, got.body)
	}
	soon(t, "a logout counts on the other server", func() bool {
		return b.do(t, "GET", "/v1/auth/session", nil, session).status == http.StatusUnauthorized
	})
}
