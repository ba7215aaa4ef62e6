package cluster

import (
	"testing"

	"github.com/ropewalk/ropewalk/internal/testkit"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

func TestAUserRemovedFromAuthAdminsIsNotAnAdminOnAnyServer(t *testing.T) {
	t.Parallel()
	p := harness.StartProvider(t)
	database := harness.Databases.New(t)
	config := func(admins string) string {
		return harness.OIDCAuth(p.Issuer, "clientId: app", "admins: ["+admins+"]") + "storage: {url: '" + database + "'}\n"
	}
	var servers []*harness.Server
	for range 2 {
		servers = append(servers, harness.Serve(t, func(s *harness.Server) { s.Database = database }, harness.Config(config("group:staff"))))
	}
	first, second := servers[0], servers[1]
	statements := map[string]any{"groups": []string{"staff"}}
	p.State(statements, nil, map[string]any{"sub": "alice"})
	session, token := p.LogIn(t, first), "Authorization: Bearer "+p.Token(statements)
	role := func(s *harness.Server, credentials string) any {
		user, _ := s.Do(t, "GET", "/v1/auth/session", nil, credentials).Object(t)["user"].(map[string]any)
		return user["orgRole"]
	}
	for i, s := range servers {
		if login, bearer := role(s, session), role(s, token); login != "admin" || bearer != "admin" {
			t.Fatalf("server %d: %v, %v", i, login, bearer)
		}
	}
	first.MustReload(t, config("group:other"))
	if login, bearer := role(first, session), role(first, token); login != "member" || bearer != "member" {
		t.Errorf("the reloaded server: %v with the login, %v with the token", login, bearer)
	}
	if !testkit.Within(propagationLimit, func() bool { return role(second, session) == "member" }) {
		t.Error("the other server should not treat the login as an admin's")
	}
	if role(second, token) != "admin" { // its own configuration has not changed
		t.Error("the other server should follow its old configuration until it is reloaded")
	}
	if login := role(first, session); login != "member" {
		t.Errorf("after the other server accepted the token as an admin's, the login on the first server has the role %v", login)
	}
	second.MustReload(t, config("group:other"))
	for i, s := range servers {
		if login, bearer := role(s, session), role(s, token); login != "member" || bearer != "member" {
			t.Errorf("server %d, after both were reloaded: %v with the login, %v with the token", i, login, bearer)
		}
	}
}
