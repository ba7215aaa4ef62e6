package mcphttp

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// at sends initialize to a path with a token and headers in the form "Name: value".
func (r *rig) at(path, token string, header ...string) (*http.Response, string) {
	r.Helper()
	req, err := http.NewRequestWithContext(r.Context(), http.MethodPost, r.url+path, strings.NewReader(hello("2025-11-25")))
	if err != nil {
		r.Fatal(err)
	}
	req.Header.Set("Accept", usualAccept)
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for _, h := range header {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	resp, err := r.client.Do(req)
	if err != nil {
		r.Fatal(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return resp, string(body)
}

func TestAURLCanSpecifyTheWorkspace(t *testing.T) {
	r := start(t, func(o *Options) { o.Views = fakeViews{"ws_one/support"} })
	for _, c := range []struct {
		path, token, header string
		status              int
		text                string
	}{
		{"/mcp/ws_one", "alice", "", 200, "protocolVersion"},
		{"/mcp/me", "alice", "", 200, "protocolVersion"},
		{"/mcp/ws_one", "alice", "X-Workspace-Id: ws_one", 200, "protocolVersion"},
		{"/mcp/ws_one", "alice", "X-Workspace-Id: ws_two", 400, "a different workspace"},
		{"/mcp/me", "alice", "X-Workspace-Id: ws_two", 400, "a different workspace"},
		{"/mcp/ws_bob", "alice", "", 403, "not a member"},
		{"/mcp/one", "alice", "", 404, ""},
		{"/mcp", "alice", "", 400, "/mcp/me"},
		{"/mcp", "alice", "", 400, "/mcp/ws_"},
		{"/mcp/ws_one", "for-ws_one", "", 200, "protocolVersion"}, // a token for that resource only
		{"/mcp/ws_two", "for-ws_one", "", 401, ""},
		{"/mcp", "for-ws_one", "X-Workspace-Id: ws_one", 401, ""},
		{"/mcp/ws_one/v/support", "alice", "", 200, "protocolVersion"},
		{"/mcp/me/v/support", "alice", "X-Workspace-Id: ws_one", 200, "protocolVersion"},
		{"/mcp/ws_one/v/support", "alice", "X-Workspace-Id: ws_two", 400, "a different workspace"},
		{"/mcp/ws_two/v/support", "alice", "", 404, "there is no view"},
		{"/mcp/ws_one/v/none", "alice", "", 404, "there is no view"},
		{"/mcp/ws_one/v/none", "", "", 401, ""},
		{"/mcp/ws_bob/v/support", "alice", "", 403, "not a member"},
		{"/mcp/ws_one/v/Support", "alice", "", 404, ""},
		{"/mcp/ws_one/v/", "alice", "", 404, ""},
		{"/mcp/ws_one/x/support", "alice", "", 404, ""},
		{"/mcp/ws_one/v/support", "for-ws_one/v/support", "", 200, "protocolVersion"},
		{"/mcp/ws_one", "for-ws_one/v/support", "", 401, ""}, // a token for a view gives access only to that view
	} {
		var header []string
		if c.header != "" {
			header = append(header, c.header)
		}
		resp, body := r.at(c.path, c.token, header...)
		if resp.StatusCode != c.status || !strings.Contains(body, c.text) {
			t.Errorf("%s as %s with %q: %d %s, want %d with %q", c.path, c.token, c.header, resp.StatusCode, body, c.status, c.text)
		}
	}
}

// fakeViews lists views in the form workspace/name.
type fakeViews []string

func (f fakeViews) Has(workspace, name string) bool { return slices.Contains(f, workspace+"/"+name) }

func TestASessionBelongsToTheViewForWhichItWasOpened(t *testing.T) {
	r := start(t, func(o *Options) { o.Views = fakeViews{"ws_one/support", "ws_one/sales"} })
	resp, _ := r.at("/mcp/ws_one/v/support", "alice")
	session := resp.Header.Get("Mcp-Session-Id")
	for path, want := range map[string]int{"/mcp/ws_one/v/support": 200, "/mcp/ws_one/v/sales": 404, "/mcp/ws_one": 404} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.url+path, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = http.Header{"Accept": {usualAccept}, "Content-Type": {"application/json"}, "Authorization": {"Bearer alice"}, "Mcp-Session-Id": {session}}
		resp, err := r.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: %d, want %d", path, resp.StatusCode, want)
		}
	}
}

func TestEachResourceHasItsOwnMetadata(t *testing.T) {
	r := start(t, func(o *Options) { o.Scopes = func() []string { return []string{"openid", "tools"} } })
	for path, document := range map[string]string{
		"/mcp": "/.well-known/oauth-protected-resource", "/mcp/ws_one": "/.well-known/oauth-protected-resource/mcp/ws_one",
		"/mcp/me": "/.well-known/oauth-protected-resource/mcp/me", "/mcp/me/v/support": "/.well-known/oauth-protected-resource/mcp/me/v/support",
	} {
		resp, _ := r.at(path, "")
		want := `Bearer error="unauthorized", error_description="Authorization required", resource_metadata="` + r.url + document + `", scope="openid tools"`
		if got := resp.Header.Get("WWW-Authenticate"); resp.StatusCode != 401 || got != want {
			t.Errorf("%s: %d %s, want %s", path, resp.StatusCode, got, want)
		}
		answer, err := r.client.Get(r.url + document)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		resource := strings.TrimPrefix(document, "/.well-known/oauth-protected-resource")
		if want := `{"resource":"` + r.url + resource + `","authorization_servers":["https://idp.test"],"scopes_supported":["openid","tools"],"bearer_methods_supported":["header"]}`; string(body) != want {
			t.Errorf("%s: %s, want %s", document, body, want)
		}
	}
	if resp, err := r.client.Get(r.url + "/.well-known/oauth-protected-resource/mcp/x"); err != nil || resp.StatusCode != 404 {
		t.Errorf("an unknown resource: %v %v", resp, err)
	} else {
		resp.Body.Close()
	}
}

func TestClientsAskForScopesThatTheProviderOffers(t *testing.T) {
	for offers, want := range map[string]string{
		``:                                       "openid profile tools",
		`"scopes_supported":["openid","tools"],`: "openid tools",
		`"scopes_supported":[],`:                 "",
		`"scopes_supported":["tools","x","openid"],`: "openid tools",
		`"scopes_supported":"openid",`:               "openid profile tools",
	} {
		r := start(t, func(o *Options) { o.Scopes = func() []string { return []string{"openid", "profile", "tools"} } })
		r.people.offers = offers
		resp, _ := r.at("/mcp", "")
		_, got, _ := strings.Cut(resp.Header.Get("WWW-Authenticate"), `scope="`)
		if got = strings.TrimSuffix(got, `"`); got != want {
			t.Errorf("%s: the challenge asks for %q, want %q", offers, got, want)
		}
		answer, err := r.client.Get(r.url + "/.well-known/oauth-protected-resource")
		if err != nil {
			t.Fatal(err)
		}
		var document struct {
			Scopes []string `json:"scopes_supported"`
		}
		err = json.NewDecoder(answer.Body).Decode(&document)
		answer.Body.Close()
		if got := strings.Join(document.Scopes, " "); err != nil || got != want {
			t.Errorf("%s: the document lists %q, %v, want %q", offers, got, err, want)
		}
		if resp, _ := r.at("/mcp/me", "granted-openid"); resp.StatusCode != 403 { // a required scope is still required
			t.Errorf("%s: a token without the tools scope gets %d", offers, resp.StatusCode)
		}
	}
}

func TestTheRefusalOfATokenListsTheScopesThatItNeeds(t *testing.T) {
	r := start(t, func(o *Options) { o.Scopes = func() []string { return []string{"openid", "tools"} } })
	resp, body := r.at("/mcp/me", "granted-openid")
	want := `Bearer error="insufficient_scope", error_description="The token lacks a scope", scope="openid tools", resource_metadata="` + r.url + `/.well-known/oauth-protected-resource/mcp/me"`
	if got := resp.Header.Get("WWW-Authenticate"); resp.StatusCode != 403 || got != want || !strings.Contains(body, "lacks the scope tools") {
		t.Errorf("%d %s %s", resp.StatusCode, got, body)
	}
	for _, token := range []string{"granted-tools", "granted-email+tools", "alice"} {
		if resp, body := r.at("/mcp/me", token); resp.StatusCode != 200 {
			t.Errorf("%s: %d %s", token, resp.StatusCode, body)
		}
	}
}
