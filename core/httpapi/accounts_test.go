package httpapi

import (
	"html"
	"net/http"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/accounts"
)

func TestALinkPageIsOnlyForOneUser(t *testing.T) {
	a := newAccess()
	a.user("alice", core.RoleMember, core.Workspace{ID: core.DefaultWorkspaceID, Role: core.RoleMember})
	a.user("bob", core.RoleMember, core.Workspace{ID: core.DefaultWorkspaceID, Role: core.RoleMember})
	a.cookies["alice"], a.cookies["bob"] = a.bearers["alice"], a.bearers["bob"]
	h := open(t, a, nil)
	const page = "/v1/accounts/link?app=far&account=main&for=alice&workspace=" + core.DefaultWorkspaceID
	as := func(who string) map[string]string {
		return map[string]string{"Authorization": "", "Cookie": "service_session=" + who}
	}
	for _, c := range []struct {
		name, method, path string
		header             map[string]string
		status             int
		says, hides        string
	}{
		{"the right person", "GET", page, as("alice"), 200, "https://idp.example", ""},
		{"another person", "GET", page, as("bob"), 403, "created for another person", "idp.example"},
		{"another person agrees", "POST", page, as("bob"), 403, "created for another person", ""},
		{"no cookie on the first request, because the browser may have withheld it", "GET", page, map[string]string{"Authorization": ""}, 200, "again=1", "idp.example"},
		{"not logged in", "GET", page + "&again=1", map[string]string{"Authorization": ""}, 401, "Log in first", "idp.example"},
		{"an API key instead of a browser login", "GET", page + "&again=1", map[string]string{"Authorization": "Bearer alice"}, 401, "Log in first", ""},
		{"another person's workspace", "GET", strings.Replace(page, core.DefaultWorkspaceID, "ws_other", 1), as("alice"), 403, "not a member", ""},
		{"no such app", "GET", strings.Replace(page, "app=far", "app=near", 1), as("alice"), 404, "no app named near", ""},
		{"another site's page agrees", "POST", page, map[string]string{"Authorization": "", "Cookie": "service_session=alice", "Origin": "https://evil.example"}, 403, "another site", ""},
		{"a login that is not in progress", "GET", "/v1/accounts/callback?state=other&code=c", as("alice"), 403, "not in progress", ""},
		{"a login from another browser", "GET", "/v1/accounts/callback?state=state&code=c", as("alice"), 403, "not in progress", ""},
		{"a login from this browser", "GET", "/v1/accounts/callback?state=state&code=c", map[string]string{"Authorization": "", "Cookie": "service_session=alice; service_account=binding"}, 200, "The account is linked", ""},
		{"a server that refuses the scopes", "GET", "/v1/accounts/callback?state=state&error=invalid_scope", map[string]string{"Authorization": "", "Cookie": "service_session=alice; service_account=binding"}, 303, "", ""},
	} {
		r := h.do(t, call{method: c.method, path: c.path, header: c.header})
		if r.StatusCode != c.status || !strings.Contains(r.body, c.says) || c.hides != "" && strings.Contains(r.body, c.hides) {
			t.Errorf("%s: %d %s", c.name, r.StatusCode, r.body)
		}
		if policy := r.Header.Get("Content-Security-Policy"); strings.HasPrefix(r.Header.Get("Content-Type"), "text/html") && !strings.Contains(policy, "frame-ancestors 'none'") {
			t.Errorf("%s: the policy is %q", c.name, policy)
		}
	}
	if refused := h.do(t, call{method: "POST", path: page, header: as("alice")}); refused.StatusCode != http.StatusConflict || !strings.Contains(refused.body, "asks for something else") {
		t.Errorf("without the page's digest: %d %s", refused.StatusCode, refused.body)
	}
	shown := h.do(t, call{method: "GET", path: page, header: as("alice")})
	_, form, _ := strings.Cut(shown.body, `<form method="post" action="`)
	action, _, _ := strings.Cut(form, `"`)
	agreed := h.do(t, call{method: "POST", path: html.UnescapeString(action), header: as("alice")})
	cookie := agreed.Header.Get("Set-Cookie")
	if agreed.StatusCode != http.StatusSeeOther || !strings.HasPrefix(agreed.Header.Get("Location"), "https://idp.example/authorize?redirect_uri=") ||
		!strings.Contains(cookie, "service_account=binding; Path=/v1/accounts/callback") || !strings.Contains(cookie, "HttpOnly") || !strings.Contains(cookie, "SameSite=Lax") {
		t.Errorf("%d to %s with %s", agreed.StatusCode, agreed.Header.Get("Location"), cookie)
	}
}

func TestAccountsAreReturnedWithoutSecrets(t *testing.T) {
	h := open(t, newAccess(), nil)
	r := h.do(t, call{method: "GET", path: "/v1/accounts"})
	if r.StatusCode != 200 || !strings.Contains(r.body, `"id":"acc_1"`) || strings.Contains(strings.ToLower(r.body), "token") {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	for _, c := range []call{
		{method: "POST", path: "/v1/accounts", body: `{"app":"far","name":"Two Words"}`},
		{method: "POST", path: "/v1/accounts", body: `{"app":"far","scopes":["a b"]}`},
		{method: "POST", path: "/v1/accounts", body: `{}`},
		{method: "PATCH", path: "/v1/accounts/acc_1", body: `{"default":false}`},
	} {
		if r := h.do(t, c); r.StatusCode != 400 {
			t.Errorf("%s %s: %d %s", c.method, c.body, r.StatusCode, r.body)
		}
	}
}

func TestAnAccountIsLinkedWithACodeOnceTheCallerHasAgreed(t *testing.T) {
	h := open(t, newAccess(), nil)
	for _, c := range []struct {
		name, path, body string
		status           int
		says, hides      string
	}{
		{"a caller who does not want a code", "/v1/accounts", `{"app":"far"}`, 200, `"url":`, `"consent"`},
		{"a caller who has not agreed", "/v1/accounts", `{"app":"far","device":true}`, 200, `"issuer":"https://idp.example"`, "WDJB"},
		{"a caller who agreed to something else", "/v1/accounts", `{"app":"far","device":true,"agreed":"other"}`, 409, "something else", "WDJB"},
		{"a caller who agreed", "/v1/accounts", `{"app":"far","device":true,"agreed":"` + agreedDigest(t) + `"}`, 200, `"code":"WDJB-MJHT","interval":2`, `"consent"`},
		{"a code that has not been entered yet", "/v1/accounts/device", `{"login":"early"}`, 200, `{"interval":1}`, ""},
		{"a code that has been entered", "/v1/accounts/device", `{"login":"login"}`, 200, `"id":"acc_1"`, "interval"},
		{"an unknown login", "/v1/accounts/device", `{"login":"other"}`, 403, "not in progress", ""},
		{"no login", "/v1/accounts/device", `{}`, 403, "not in progress", ""},
	} {
		r := h.do(t, call{method: "POST", path: c.path, body: c.body})
		if r.StatusCode != c.status || !strings.Contains(r.body, c.says) || c.hides != "" && strings.Contains(r.body, c.hides) {
			t.Errorf("%s: %d %s", c.name, r.StatusCode, r.body)
		}
	}
}

func agreedDigest(t *testing.T) string {
	t.Helper()
	consent, err := fakeAccounts{}.Prepare(t.Context(), core.Caller{}, accounts.Want{App: "far"})
	if err != nil {
		t.Fatal(err)
	}
	return consent.Digest()
}
