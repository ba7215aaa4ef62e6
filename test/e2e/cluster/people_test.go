package cluster

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testenv"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// A login that starts on one server may end on another. Changes to the user apply on both.
func TestAUserIsTheSameOnAllServers(t *testing.T) {
	t.Parallel()
	port := harness.FreePort(t)
	back := "http://127.0.0.1:" + port + "/v1/auth/callback"
	provider := testenv.StartOpenIDProvider(t, back)
	database := harness.Databases.New(t)
	share := []harness.Option{
		func(s *harness.Server) { s.Database = database },
		harness.Config(harness.OIDCAuth(provider.Issuer, "clientId: app", "redirectUri: "+back, "organizationId: org_1") + "storage: {url: '" + database + "'}\n"),
		harness.Env("SERVICE_API_KEY=" + harness.APIKey),
	}
	a, b := harness.Serve(t, append(share, harness.Flags("--port", port))...), harness.Serve(t, share...)
	const owner = "Authorization: Bearer " + harness.APIKey

	alice := harness.NewBrowser(t) // cookies ignore the port, so both servers are one site for her
	alice.Stop = a.URL + "/v1/auth/session"
	if done := alice.Visit(t, b.URL+"/v1/auth/authorize?returnTo=/v1/auth/session"); done.StatusCode != http.StatusFound || alice.At.String() != alice.Stop {
		t.Fatalf("the login began on one server and ended on the other with %d at %s", done.StatusCode, alice.At)
	}
	session := "Cookie: service_session=" + alice.Cookie(t, "service_session", a.URL)
	who := b.Do(t, "GET", "/v1/auth/session", nil, session)
	if who.Status != http.StatusOK || !strings.Contains(who.Body, `"alice@example.com"`) {
		t.Fatalf("the session on the server where it began: %d %s", who.Status, who.Body)
	}
	id := who.Object(t)["user"].(map[string]any)["id"]

	manage := func(s *harness.Server, tool string, arguments map[string]any) map[string]any {
		t.Helper()
		got := s.Do(t, "POST", "/v1/tools/call", map[string]any{"server": "system", "tool": tool, "arguments": arguments}, owner)
		result, ok := got.Object(t)["result"].(map[string]any)
		if got.Status != http.StatusOK || !ok {
			t.Fatalf("%s %v: %d %s", tool, arguments, got.Status, got.Body)
		}
		return result
	}
	crew := manage(a, "manage_workspaces", map[string]any{"action": "create", "name": "Crew"})["workspace"].(map[string]any)["id"].(string)
	enters := func(s *harness.Server) int {
		return s.Do(t, "GET", "/v1/apps", nil, session, "X-Workspace-Id: "+crew).Status
	}
	if got := enters(b); got != http.StatusForbidden { // the server caches this result
		t.Fatalf("before she is a member, the workspace returns %d", got)
	}
	manage(a, "manage_workspaces", map[string]any{"action": "put_member", "workspace": crew, "user": id})
	waitFor(t, "a new member enters on the other server", func() bool { return enters(b) == http.StatusOK })
	manage(a, "manage_workspaces", map[string]any{"action": "remove_member", "workspace": crew, "user": id})
	waitFor(t, "a removed member is refused", func() bool { return enters(b) == http.StatusForbidden })

	role := func() (got struct{ User struct{ OrgRole string } }) {
		_ = json.Unmarshal([]byte(b.Do(t, "GET", "/v1/auth/session", nil, session).Body), &got)
		return got
	}
	if role().User.OrgRole != "admin" {
		t.Fatalf("her first role: %+v", role())
	}
	manage(a, "manage_users", map[string]any{"action": "set_role", "user": id, "role": "member"})
	waitFor(t, "a new role applies on the other server", func() bool { return role().User.OrgRole == "member" })
	if got := a.Do(t, "POST", "/v1/auth/logout", `{}`, session); got.Status != http.StatusOK {
		t.Errorf("logout: %d %s", got.Status, got.Body)
	}
	waitFor(t, "a logout applies on the other server", func() bool {
		return b.Do(t, "GET", "/v1/auth/session", nil, session).Status == http.StatusUnauthorized
	})
}
