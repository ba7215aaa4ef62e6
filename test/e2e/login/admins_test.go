package login

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

func TestAnEntryInAuthAdminsMatchesOneKindOfClaim(t *testing.T) {
	t.Parallel()
	p := harness.StartProvider(t)
	s := serveProvider(t, p)
	bearer := func(claims map[string]any) string { return "Authorization: Bearer " + p.Token(claims) }
	email := bearer(map[string]any{"sub": "1", "email": boss, "email_verified": true})
	capital := bearer(map[string]any{"sub": "2", "email": "BOSS@Example.com", "email_verified": true})
	folded := bearer(map[string]any{"sub": "3", "email": "bo\u017f\u017f@example.com", "email_verified": true})
	group := bearer(map[string]any{"sub": "4", "groups": []string{"x", boss}})
	subject := bearer(map[string]any{"sub": boss})
	staff := bearer(map[string]any{"sub": "5", "groups": []string{"staff"}})
	called := bearer(map[string]any{"sub": "staff"})
	named := bearer(map[string]any{"sub": "6", "email": "staff", "email_verified": true})
	all := []string{email, capital, folded, group, subject, staff, called, named}
	for entry, admins := range map[string][]string{
		boss:                          {email, capital},
		"email:Boss@example.com":      {email, capital},
		"group:" + boss:               {group},
		"subject:" + boss:             {subject},
		"group:staff":                 {staff},
		"subject:staff":               {called},
		"staff":                       {staff, called}, // the older format without a type
		"subject:email:" + boss:       {},
		"email:bo\u017fs@example.com": {},
	} {
		s.MustReload(t, harness.OIDCAuth(p.Issuer, "clientId: app", `admins: ["`+entry+`"]`))
		for i, credentials := range all {
			want := "member"
			for _, admin := range admins {
				if admin == credentials {
					want = "admin"
				}
			}
			if role, _ := roleOf(t, s, credentials); role != want {
				t.Errorf("with admins: [%s], person %d is %s, want %s", entry, i, role, want)
			}
		}
	}
}

func TestAReloadDemotesUsersRemovedFromAuthAdmins(t *testing.T) {
	t.Parallel()
	p := harness.StartProvider(t)
	config := func(admins string) string { return harness.OIDCAuth(p.Issuer, "clientId: app", "admins: ["+admins+"]") }
	s := harness.Serve(t, harness.Config(config("group:staff, "+boss)))
	statements := map[string]map[string]any{
		"by email": {"sub": "a", "email": boss, "email_verified": true}, "by group": {"sub": "b", "groups": []string{"staff"}},
	}
	sessions := map[string]string{}
	for name, claims := range statements {
		p.State(claims, map[string]any{"sub": claims["sub"]}, map[string]any{"sub": claims["sub"]})
		sessions[name] = p.LogIn(t, s)
	}
	expect := func(when, want string) {
		t.Helper()
		for name, session := range sessions {
			if role, _ := roleOf(t, s, "Authorization: Bearer "+p.Token(statements[name])); role != want {
				t.Errorf("%s: the token of the admin %s has the role %s", when, name, role)
			}
			if role, _ := roleOf(t, s, session); role != want {
				t.Errorf("%s: the login of the admin %s has the role %s", when, name, role)
			}
		}
	}
	expect("at first", "admin")
	s.MustReload(t, config("subject:root"))
	for name, session := range sessions {
		if role, _ := roleOf(t, s, session); role != "member" {
			t.Errorf("before a token was used, the login of the admin %s has the role %s", name, role)
		}
	}
	expect("after the reload", "member")
	s.MustReload(t, config("group:staff, "+boss))
	expect("after the entries were added again", "admin")

	s.Stop()
	harness.WriteFile(t, filepath.Join(s.Home, "ropewalk.yaml"), config("subject:root"))
	s.Start()
	for name, session := range sessions {
		if role, _ := roleOf(t, s, session); role != "member" {
			t.Errorf("after a restart, the login of the admin %s has the role %s", name, role)
		}
	}
}

func TestEmptyingTheListOfAdminsMakesNobodyAnAdmin(t *testing.T) {
	t.Parallel()
	p := harness.StartProvider(t)
	s := serveProvider(t, p, "admins: [subject:alice]")
	alice := "Authorization: Bearer " + p.Token(nil)
	if role, _ := roleOf(t, s, alice); role != "admin" {
		t.Fatalf("alice is %s", role)
	}
	s.MustReload(t, harness.OIDCAuth(p.Issuer, "clientId: app"))
	for _, who := range []string{"alice", "mallory"} {
		if role, _ := roleOf(t, s, "Authorization: Bearer "+p.Token(map[string]any{"sub": who})); role != "member" {
			t.Errorf("with auth.admins empty, %s is %s", who, role)
		}
	}
}

func TestMembershipsFollowTheProvidersGroups(t *testing.T) {
	t.Parallel()
	p := harness.StartProvider(t)
	config := func(join string) string {
		return harness.OIDCAuth(p.Issuer, "clientId: app", "admins: [\"subject:root\"]", "join: "+join)
	}
	s := harness.Serve(t, harness.Config(config("[{group: eng, workspace: default}, {group: leads, workspace: default, role: admin}]")))
	session := func(groups ...string) (status int) {
		c := &harness.MCPClient{URL: s.URL, Headers: []string{"Authorization", "Bearer " + p.Token(map[string]any{"sub": "dave", "groups": groups})}}
		status, _, _, err := c.Post(t.Context(), harness.Initialize)
		if err != nil {
			t.Fatal(err)
		}
		return status
	}
	role := func(groups ...string) any {
		token := p.Token(map[string]any{"sub": "dave", "groups": groups})
		response := s.Do(t, "GET", "/v1/workspace", nil, "Authorization: Bearer "+token, harness.WorkspaceHeader)
		if response.Status != 200 {
			return response.Status
		}
		workspace, _ := response.Object(t)["workspace"].(map[string]any)
		return workspace["role"]
	}
	for i, c := range []struct {
		groups []string
		status int
		role   any
	}{{nil, 403, 403}, {[]string{"eng"}, 200, "member"}, {[]string{"eng", "leads"}, 200, "admin"}, {[]string{"eng"}, 200, "member"}, {[]string{"other"}, 403, 403}, {[]string{"leads"}, 200, "admin"}} {
		if got := session(c.groups...); got != c.status {
			t.Errorf("step %d, groups %v: %d, want %d", i, c.groups, got, c.status)
		}
		if got := role(c.groups...); got != c.role {
			t.Errorf("step %d, groups %v: the role is %v, want %v", i, c.groups, got, c.role)
		}
	}
	s.MustReload(t, config("{workspace: default}"), "auth")
	if got := role("leads"); got != "member" {
		t.Errorf("after the rules were removed: %v", got)
	}
}

func TestAKeyWithAnOrganizationRoleManagesTheOrganization(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t, harness.Env("SERVICE_API_KEY="+harness.APIKey))
	key := func(more ...string) []string {
		made, status := harness.Command(t, []string{"ROPEWALK_HOME=" + s.Home}, append([]string{"key", "create", "k"}, more...)...)
		lines := strings.Fields(made)
		if status != 0 || len(lines) == 0 {
			t.Fatalf("%d %s", status, made)
		}
		return []string{"ROPEWALK_SERVER=" + s.URL, "ROPEWALK_API_KEY=" + lines[len(lines)-1]}
	}
	if output, status := harness.Command(t, key(), "workspace", "create", "research"); status == 0 {
		t.Errorf("a member's key created a workspace: %s", output)
	}
	if output, status := harness.Command(t, key("--org-role", "admin"), "workspace", "create", "research"); status != 0 {
		t.Errorf("an organization admin's key: %d %s", status, output)
	}
}
