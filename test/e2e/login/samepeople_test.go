package login

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core/pluginhost"
	"github.com/ropewalk/ropewalk/internal/testenv"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// phase is one of the identity providers that the server uses one after another.
type phase struct {
	name   string
	config string
	token  func(person int) string
}

func TestUsersKeepTheirIdentityWhenTheProviderChanges(t *testing.T) {
	t.Parallel()
	changeProviders(t, 12, 20, time.Second)
}

// thirdParty builds the auth plugin that ropewalk plugin init writes. It returns the plugin's issuer and settings, and
// a function that issues its tokens.
func thirdParty(t *testing.T) (issuer, settings string, token func(subject, email string) string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "demo")
	write := exec.CommandContext(t.Context(), harness.Binary(t), "plugin", "init", "auth", "demo", "--sdk", testenv.Root(t))
	write.Dir = filepath.Dir(dir)
	if out, err := write.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", "demo", ".")
	build.Dir, build.Env = dir, append(append(os.Environ(), testenv.GoEnviron("-mod=mod")...), "GOPROXY=off", "GOSUMDB=off", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	path := filepath.Join(dir, "demo")
	sum, err := pluginhost.HashFile(path)
	if err != nil {
		t.Fatal(err)
	}
	issuer = "https://third.example"
	const key = "the-key-of-a-third-party-0123456789"
	return issuer, fmt.Sprintf("adapter: demo, path: %s, sha256: %s, audience: any, issuer: '%s', key: %s", path, sum, issuer, key),
		func(subject, email string) string {
			payload := base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"sub":%q,"email":%q,"exp":%d}`, subject, email, time.Now().Add(time.Hour).Unix()))
			mac := hmac.New(sha256.New, []byte(key))
			mac.Write([]byte(payload))
			return payload + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
		}
}

// changeProviders changes the identity provider four times: to another provider, to a third-party plugin, to a file,
// and back to the first provider. Before and after each change, the users make perSecond calls per second for the given
// time.
func changeProviders(t *testing.T, people, perSecond int, while time.Duration) {
	address := func(person int) string { return fmt.Sprintf("p%d@example.com", person) }
	a, b := harness.StartProvider(t), harness.StartProvider(t)
	at := func(p *harness.Provider, kind string) func(int) string {
		tokens := make([]string, people)
		for i := range tokens {
			claims := map[string]any{"sub": fmt.Sprintf("%s%d", kind, i), "email": address(i), "email_verified": true}
			if i == 0 && kind == "a" {
				claims["roles"] = []string{"staff-admin"} // only the first provider assigns a role
			}
			tokens[i] = p.Token(claims)
		}
		return func(i int) string { return tokens[i] }
	}
	file := filepath.Join(t.TempDir(), "tokens.yaml")
	inFile := func(person int) string { return fmt.Sprintf("the-token-of-person-%d", person) }
	lines := "tokens:\n"
	for i := range people {
		lines += fmt.Sprintf("  - {token: %s, subject: f%d, email: %s, expires: 2099-01-01T00:00:00Z}\n", inFile(i), i, strings.ToUpper(address(i)))
	}
	harness.WriteFile(t, file, lines)
	known := func(issuers ...string) string { return "sameAs: [\"" + strings.Join(issuers, `", "`) + "\"]" }
	issuer, settings, ofThird := thirdParty(t)
	byPlugin := make([]string, people)
	for i := range byPlugin {
		byPlugin[i] = ofThird(fmt.Sprint("t", i), address(i))
	}
	first := phase{"a", harness.OIDCAuth(a.Issuer, "clientId: app"), at(a, "a")}
	phases := []phase{
		{"b", harness.OIDCAuth(b.Issuer, "clientId: app", known(a.Issuer)), at(b, "b")},
		{"plugin", "auth: {" + settings + ", " + known(b.Issuer) + "}\n", func(i int) string { return byPlugin[i] }},
		{"static", "auth: {adapter: static, audience: any, file: " + file + ", " + known(issuer) + "}\n", inFile},
		{"a again", first.config, first.token},
	}
	s := harness.Serve(t, harness.Flags("--sample"), harness.Env("SERVICE_API_KEY="+harness.APIKey), harness.Config(first.config))
	s.Key = harness.APIKey

	ids, keys := make([]string, people), make([]string, people)
	clients := make([]*harness.MCPClient, people)
	for i := range people {
		bearer := "Bearer " + first.token(i)
		ids[i] = userOf(t, s, bearer)
		s.Do(t, "POST", "/v1/workspaces/ws_default/members", map[string]any{"user": ids[i], "role": "member"}, "Authorization: Bearer "+s.Key)
		made := s.Do(t, "POST", "/v1/keys", map[string]any{"name": "k"}, "Authorization: "+bearer, "X-Workspace-Id: ws_default").Object(t)
		keys[i], _ = made["key"].(string)
		clients[i] = s.OpenSession(t, "Authorization", bearer)
	}
	stranger := userOf(t, s, "Bearer "+a.Token(map[string]any{"sub": "nobody", "email": nil, "email_verified": nil}))

	for _, now := range phases {
		load := harness.StartLoad(t, perSecond, clients...)
		<-time.After(while)
		load.WaitForCalls(t, 10)
		plan := planOf(t, s, now.config)
		s.MustReload(t, now.config, "auth")
		<-time.After(while)
		load.WaitForCalls(t, 10)
		load.Stop()
		t.Logf("%s: %d calls with tokens from the previous provider: statuses %v", now.name, load.Calls, load.Statuses)
		if good, bad := load.Statuses[http.StatusOK], load.Statuses[http.StatusUnauthorized]; good == 0 || bad == 0 || good+bad != load.Calls {
			t.Errorf("%s: statuses %v, the first failure: %+v", now.name, load.Statuses, load.Failures)
		}
		checkAll(t, s, now, ids, keys, clients)
		if list := listed(t, s); len(list) != people+2 { // the list includes the owner and the stranger
			t.Errorf("%s: %d users: %v", now.name, len(list), list)
		} else if suspended := list[stranger]; suspended != (now.name != "a again") {
			t.Errorf("%s: suspended, for the user without an email: %v", now.name, suspended)
		}
		if now.name == "a again" {
			if plan.Known != people+1 || len(plan.New) != 0 {
				t.Errorf("the plan for %s: %+v", now.name, plan)
			}
		} else if plan.Linked != people || plan.Known != 0 || len(plan.New) != 1 || plan.New[0].ID != stranger {
			t.Errorf("the plan for %s: %+v", now.name, plan)
		}
	}
}

// checkAll sends tokens from the new provider for every person. Each person must have the same session, user and key as
// before.
func checkAll(t *testing.T, s *harness.Server, now phase, ids, keys []string, clients []*harness.MCPClient) {
	t.Helper()
	var all sync.WaitGroup
	for i, c := range clients {
		all.Go(func() {
			if status, _ := c.Echo(t.Context(), "old"); status != http.StatusUnauthorized {
				t.Errorf("%s: a token from the previous provider gets %d", now.name, status)
			}
			if got := s.Do(t, "GET", "/v1/apps", nil, "Authorization: Bearer "+keys[i], "X-Workspace-Id: ws_default"); now.name != "a again" && got.Status != http.StatusUnauthorized {
				t.Errorf("%s: the key of a suspended user gets %d", now.name, got.Status)
			}
			c.Headers = []string{"Authorization", "Bearer " + now.token(i)}
			for n := range 5 {
				if _, err := c.Echo(t.Context(), fmt.Sprintf("%d-%d", i, n)); err != nil {
					t.Errorf("%s: the session of person %d: %v", now.name, i, err)
				}
			}
			if id := userOf(t, s, "Bearer "+now.token(i)); id != ids[i] {
				t.Errorf("%s: person %d is user %s, want %s", now.name, i, id, ids[i])
			}
			admin := s.Do(t, "GET", "/v1/users", nil, "Authorization: Bearer "+now.token(i)).Status == http.StatusOK
			if admin != (i == 0 && now.name == "a again") {
				t.Errorf("%s: person %d is an admin of the organization: %v", now.name, i, admin)
			}
			if got := s.Do(t, "GET", "/v1/apps", nil, "Authorization: Bearer "+keys[i], "X-Workspace-Id: ws_default"); got.Status != http.StatusOK {
				t.Errorf("%s: the key of person %d gets %d %s", now.name, i, got.Status, got.Body)
			}
		})
	}
	all.Wait()
	other := &harness.MCPClient{URL: s.URL, Headers: clients[0].Headers, Session: clients[1].Session}
	if status, _ := other.Echo(t.Context(), "other"); status != http.StatusNotFound {
		t.Errorf("%s: another user's session returns %d", now.name, status)
	}
}

func TestAnAdminCanMergeTwoUsers(t *testing.T) {
	t.Parallel()
	a, b := harness.StartProvider(t), harness.StartProvider(t)
	s := harness.Serve(t, harness.Flags("--sample"), harness.Env("SERVICE_API_KEY="+harness.APIKey), harness.Config(harness.OIDCAuth(a.Issuer, "clientId: app")))
	s.Key = harness.APIKey
	before := "Bearer " + a.Token(map[string]any{"sub": "a", "email": "ann@example.com", "email_verified": true})
	now := "Bearer " + b.Token(map[string]any{"sub": "b", "email": "ann@work.example", "email_verified": true})
	old := userOf(t, s, before)
	s.MustReload(t, harness.OIDCAuth(b.Issuer, "clientId: app"), "auth")
	if id := userOf(t, s, now); id == old {
		t.Fatal("both logins belong to the same user, although auth.sameAs is not set")
	}
	environ := []string{"ROPEWALK_URL=" + s.URL, "SERVICE_API_KEY=" + harness.APIKey, "ROPEWALK_HOME=" + s.Home}
	if output, status := harness.Command(t, environ, "user", "list"); status != 0 || !strings.Contains(output, "suspended") {
		t.Errorf("%d %s", status, output)
	}
	page, err := os.ReadFile(filepath.Join(testenv.Root(t), "docs/changing-provider.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, command, _ := strings.Cut(string(page), "\nropewalk user merge ")
	command, _, _ = strings.Cut(strings.NewReplacer("ann@new.example.com", "ann@work.example", "ann@old.example.com", "ann@example.com").Replace(command), "\n")
	if output, status := harness.Command(t, environ, append([]string{"user", "merge"}, strings.Fields(command)...)...); status != 0 {
		t.Fatalf("%d %s", status, output)
	}
	if id := userOf(t, s, now); id != old {
		t.Errorf("after the merge: %s, want %s", id, old)
	}
	if refused := s.Do(t, "POST", "/v1/users/"+old+"/merge", map[string]any{"from": "usr_owner"}, "Authorization: Bearer "+s.Key); refused.Status != http.StatusForbidden {
		t.Errorf("merging the owner: %d %s", refused.Status, refused.Body)
	}
	if refused := s.Do(t, "POST", "/v1/users/"+old+"/merge", map[string]any{"from": old}, "Authorization: "+now); refused.Status != http.StatusForbidden {
		t.Errorf("a merge by a member: %d %s", refused.Status, refused.Body)
	}
}

// userOf returns the ID of the user to whom the credentials belong.
func userOf(t *testing.T, s *harness.Server, bearer string) string {
	t.Helper()
	user, _ := s.Do(t, "GET", "/v1/auth/session", nil, "Authorization: "+bearer).Object(t)["user"].(map[string]any)
	id, _ := user["id"].(string)
	if id == "" {
		t.Errorf("the credentials belong to no user: %v", user)
	}
	return id
}

// listed returns the users by ID. The value is true if the user is suspended.
func listed(t *testing.T, s *harness.Server) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	users, _ := s.Object(t, "GET", "/v1/users", nil)["users"].([]any)
	for _, u := range users {
		one, _ := u.(map[string]any)
		id, _ := one["id"].(string)
		all[id], _ = one["suspended"].(bool)
	}
	return all
}

type plan struct {
	Known, Linked int
	New           []struct{ ID string }
}

// planOf returns how a reload would affect users. It does not apply the change.
func planOf(t *testing.T, s *harness.Server, config string) plan {
	t.Helper()
	harness.WriteFile(t, filepath.Join(s.Home, "ropewalk.yaml"), config)
	output, status := harness.Command(t, nil, "reload", "--plan", "--json", "--home", s.Home)
	var response struct{ People plan }
	if status != 0 || json.Unmarshal([]byte(output), &response) != nil {
		t.Fatalf("%d %s", status, output)
	}
	if text, status := harness.Command(t, nil, "reload", "--plan", "--home", s.Home); status != 0 || !strings.Contains(text, "People: ") {
		t.Errorf("%d %s", status, text)
	}
	return response.People
}
