package api

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testkit"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// bearer is the header with the server's API key.
const bearer = "Authorization: Bearer " + harness.APIKey

func TestPathParametersAreDecodedExactlyOnce(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t, harness.Env("SERVICE_API_KEY="+harness.APIKey), harness.Flags("--sample"))
	waitForSample(t, s)
	encode := func(text string) string {
		var b strings.Builder
		for _, c := range []byte(text) {
			b.WriteString("%" + string("0123456789ABCDEF"[c>>4]) + string("0123456789ABCDEF"[c&15]))
		}
		return b.String()
	}
	made := s.Do(t, "POST", "/v1/workspaces", map[string]any{"name": "x"}, bearer).Object(t)["workspace"].(map[string]any)["id"].(string)
	key := s.Do(t, "POST", "/v1/keys", map[string]any{"name": "k"}, bearer).Object(t)["key"].(string)
	for path, want := range map[string]int{
		"/v1/apps/" + encode("sample"):                         200,
		"/v1/apps/" + encode("sample") + "/logs":               200,
		"/v1/apps/" + url.PathEscape(encode("sample")):         404, // decoded once
		"/v1/workspaces/" + encode(made) + "/members":          200,
		"/v1/conversations/" + encode("conv_0000000000000000"): 404,
		"/v1/apps/sample%2Flogs":                               400,
		"/v1/apps/sample%00":                                   400,
		"/v1/apps/sample%0A":                                   400,
		"/v1/apps/%ff":                                         400,
		"/v1/workspaces/" + made + "%2Fmembers":                400,
		"/v1/conversations/conv%2F1/history":                   400,
		"/v1/conversations/%00":                                400,
	} {
		if a := s.Do(t, "GET", path, nil, bearer); a.Status != want {
			t.Errorf("GET %s: %d %s, want %d", path, a.Status, a.Body, want)
		}
	}
	for path, want := range map[string]int{
		"/mcp/" + encode("me"): 200, "/mcp/" + encode(harness.Workspace): 200, "/mcp/me/v/" + encode("none"): 404,
		"/mcp/me%2Fv": 400, "/mcp/%00": 400,
	} {
		if a := s.Do(t, "POST", path, harness.Initialize, "Authorization: Bearer "+key, harness.AcceptHeader); a.Status != want {
			t.Errorf("POST %s: %d %s, want %d", path, a.Status, a.Body, want)
		}
	}
	for _, path := range []string{"/v1/keys/a%2Fb", "/v1/keys/a%00", "/v1/users/a%2Fb", "/v1/workspaces/" + made + "/members/a%2Fb", "/v1/apps/a%2Fb"} {
		if a := s.Do(t, "DELETE", path, nil, bearer); a.Status != 400 {
			t.Errorf("DELETE %s: %d %s, want 400", path, a.Status, a.Body)
		}
	}
}

func TestNullAndInvalidTypesAreHandledConsistently(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t, harness.Env("SERVICE_API_KEY="+harness.APIKey), harness.Flags("--sample"))
	waitForSample(t, s)
	for body, field := range map[string]string{
		`POST /v1/chat {"message":"x","allowedTools":[null]}`:  "allowedTools",
		`POST /v1/chat {"message":"x","allowedTools":["a",1]}`: "allowedTools",
		`POST /v1/chat {"message":["x"]}`:                      "message",
		`POST /v1/conversations/delete {"ids":[null]}`:         "ids",
		`POST /v1/apps/install {"path":"/b","env":{"A":null}}`: "env.A",
		`POST /v1/apps/install {"path":"/b","env":[]}`:         "env",
		`POST /v1/keys {"name":1}`:                             "name",
		`POST /v1/workspaces {"name":{}}`:                      "name",
	} {
		route, text, _ := strings.Cut(body, " {")
		method, path, _ := strings.Cut(route, " ")
		a := s.Do(t, method, path, "{"+text, bearer)
		if message, _ := a.Object(t)["message"].(string); a.Status != 400 || !strings.Contains(message, field) {
			t.Errorf("%s: %d %s", body, a.Status, a.Body)
		}
	}
	// null means the same as a missing field.
	for _, body := range []string{
		`{"server":"sample","tool":"greet","arguments":{"name":"x"}}`, `{"server":null,"tool":"sample__greet","arguments":{"name":"x"}}`,
	} {
		if a := s.Do(t, "POST", "/v1/tools/call", body, bearer); a.Status != 200 {
			t.Errorf("%s: %d %s", body, a.Status, a.Body)
		}
	}
	if a := s.Do(t, "POST", "/v1/keys", `{"name":"k","role":null,"expiresAt":null}`, bearer); a.Status/100 != 2 {
		t.Errorf("null for optional fields: %d %s", a.Status, a.Body)
	}
	if a := s.Do(t, "GET", "/v1/openapi.json", nil, bearer); !strings.Contains(a.Body, "a null field counts as absent") ||
		!strings.Contains(a.Body, "Query parameters that an operation does not list are ignored") {
		t.Error("the document does not state the rules for null and for query parameters")
	}
	for path, want := range map[string]int{
		"/v1/apps?unknown=1": 200, "/v1/conversations?limit=&cursor=": 200, "/v1/conversations?limit=0": 400, "/v1/apps/sample/logs?follow=maybe": 400,
		"/v1/apps/sample/logs?follow=false": 200, "/v1/apps/sample/resources/primary?workspace=nope": 400,
	} {
		if a := s.Do(t, "GET", path, nil, bearer); a.Status != want {
			t.Errorf("%s: %d %s, want %d", path, a.Status, a.Body, want)
		}
	}
}

func TestAnEmptyHeaderIsNotAbsent(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t, harness.Env("SERVICE_API_KEY="+harness.APIKey))
	login := s.Do(t, "POST", "/v1/auth/login", map[string]any{"key": harness.APIKey})
	cookie, _, _ := strings.Cut(login.Header.Get("Set-Cookie"), ";")
	if a := s.Do(t, "GET", "/v1/apps", nil, "Cookie: "+cookie); a.Status != 200 {
		t.Fatalf("with the cookie: %d", a.Status)
	}
	for header, want := range map[string]int{"X-Workspace-Id: ": 400, "Authorization: ": 401} {
		if a := s.Do(t, "GET", "/v1/apps", nil, "Cookie: "+cookie, header); a.Status != want {
			t.Errorf("%q: %d %s, want %d", header, a.Status, a.Body, want)
		}
	}
	if a := s.Do(t, "POST", "/v1/keys", `{"name":"k"}`, bearer, "Content-Type: "); a.Status != 415 {
		t.Errorf("an empty Content-Type: %d %s", a.Status, a.Body)
	}
	key := "Authorization: Bearer " + s.Do(t, "POST", "/v1/keys", map[string]any{"name": "k"}, bearer).Object(t)["key"].(string)
	for _, header := range []string{"X-Workspace-Id: ", "Mcp-Session-Id: ", "Mcp-Protocol-Version: "} {
		if a := s.Do(t, "POST", "/mcp/me", harness.Initialize, key, harness.AcceptHeader, header); a.Status != 400 {
			t.Errorf("POST /mcp/me with %q: %d %s", header, a.Status, a.Body)
		}
	}
}

func TestNamesHaveNoControlCharacters(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t, harness.Env("SERVICE_API_KEY="+harness.APIKey))
	for _, invalid := range []string{"a\u0000b", "a\nb", "a\u001bb", "a\u007fb", "a\u0085b", "a\u2028b", "a\u202eb", "\tab"} {
		for _, path := range []string{"/v1/workspaces", "/v1/keys"} {
			if a := s.Do(t, "POST", path, map[string]any{"name": invalid}, bearer); a.Status != 400 || !strings.Contains(a.Body, "name") {
				t.Errorf("POST %s %q: %d %s", path, invalid, a.Status, a.Body)
			}
		}
		if a := s.Do(t, "PATCH", "/v1/workspaces/"+harness.Workspace, map[string]any{"name": invalid}, bearer); a.Status != 400 {
			t.Errorf("PATCH %q: %d %s", invalid, a.Status, a.Body)
		}
		exported := map[string]any{"format": 1, "conversation": map[string]any{"title": invalid}, "messages": []any{}}
		imported := s.Do(t, "POST", "/v1/conversations/import", exported, bearer)
		if title := imported.Object(t)["title"]; imported.Status != 200 || title != "ab" {
			t.Errorf("a conversation with the title %q was imported as %q: %d", invalid, title, imported.Status)
		}
		if a := s.Do(t, "PATCH", "/v1/conversations/"+imported.Object(t)["id"].(string), map[string]any{"title": "x" + invalid}, bearer); a.Status != 400 || !strings.Contains(a.Body, "title") {
			t.Errorf("PATCH the title %q: %d %s", invalid, a.Status, a.Body)
		}
	}
	for _, valid := range []string{"Ärzte & Söhne", "👩‍💻", "כלים"} {
		if a := s.Do(t, "POST", "/v1/workspaces", map[string]any{"name": valid}, bearer); a.Status/100 != 2 {
			t.Errorf("%q: %d %s", valid, a.Status, a.Body)
		}
	}
}

func TestATypeWithWeightZeroInAcceptIsNotUsed(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t, harness.Flags("--sample"))
	waitForSample(t, s)
	view := "/v1/apps/sample/resources/primary"
	for accept, want := range map[string]string{
		"text/html;q=0, */*":                       "application/json",
		"application/json;q=0, text/html":          "text/html; charset=utf-8",
		"application/json;q=0, */*":                "text/html; charset=utf-8",
		"text/html;q=0, application/json;q=0, */*": "406",
		"text/*;q=0, application/json; q=0.0":      "406",
		"*/*;q=0":                                  "406",
		"application/json, text/html;q=0.5":        "application/json",
	} {
		a := s.Do(t, "GET", view, nil, "Accept: "+accept)
		if got := a.Header.Get("Content-Type"); want == "406" && a.Status != 406 || want != "406" && (a.Status != 200 || got != want) {
			t.Errorf("Accept: %s: %d %s, want %s", accept, a.Status, got, want)
		}
	}
	for accept, want := range map[string]int{"application/json;q=0": 406, "*/*;q=0, text/html": 406, "application/json;q=0.1, */*;q=0": 200, "text/html": 200} {
		if a := s.Do(t, "GET", "/v1/apps", nil, "Accept: "+accept); a.Status != want {
			t.Errorf("GET /v1/apps with Accept: %s: %d", accept, a.Status)
		}
	}
	for _, accept := range []string{"application/json, text/event-stream;q=0", "application/json;q=0, text/event-stream", "*/*;q=0", "application/json;q=0, text/event-stream, */*"} {
		if a := s.Do(t, "POST", "/mcp", harness.Initialize, "Accept: "+accept, "X-Workspace-Id: "+harness.Workspace); a.Status != 406 {
			t.Errorf("POST /mcp with Accept: %s: %d", accept, a.Status)
		}
	}
}

func TestAnUploadOfTheWrongTypeReturns415(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t, harness.Env("SERVICE_API_KEY="+harness.APIKey))
	for _, media := range []string{"application/json", "text/plain", "application/x-www-form-urlencoded", "nonsense", "multipart/mixed; boundary=x"} {
		if a := s.Do(t, "POST", "/v1/apps/upload", "PK", bearer, "Content-Type: "+media); a.Status != 415 || a.Object(t)["error"] != "unsupported_media_type" {
			t.Errorf("%s: %d %s", media, a.Status, a.Body)
		}
	}
}

func TestABundleNameWithoutAScopeFollowsTheSpec(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t)
	dir := harness.GoBundle(t, "named", harness.Plain)
	manifest := filepath.Join(dir, "manifest.json")
	raw, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	harness.WriteFile(t, manifest, strings.Replace(string(raw), "@e2e/named", "named", 1))
	app := s.Install(t, map[string]any{"path": dir})
	if app.Name != "named" || !strings.HasPrefix(app.BundleName, "@") || !strings.HasSuffix(app.BundleName, "/named") {
		t.Errorf("the bundle's name is %q", app.BundleName)
	}
}

func TestAViewIsServedAtItsURI(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t, harness.Flags("--sample"))
	s.WaitForStatus(t, "sample", "running")
	app := s.Apps(t)["sample"]
	if app.UI == nil {
		t.Fatal("the sample app has no view")
	}
	uri := app.UI.PrimaryView.ResourceURI
	listed := s.Do(t, "GET", "/v1/tools", nil).Body
	if !strings.HasPrefix(uri, "ui://sample/") || !strings.Contains(listed, `"resourceUri":"`+uri+`"`) {
		t.Errorf("App.ui has %s, but the list of tools has a different URI: %.500s", uri, listed)
	}
	if a := s.Do(t, "GET", "/v1/apps/sample/resources/"+url.PathEscape(uri), nil, "Accept: application/json"); a.Status != 200 {
		t.Errorf("%s is not served: %d %s", uri, a.Status, a.Body)
	}
}

// waitForSample waits until the sample app is running. The server already serves requests while it installs the app.
func waitForSample(t *testing.T, s *harness.Server) {
	t.Helper()
	testkit.Eventually(t, "the sample app is running", func() bool {
		return strings.Contains(s.Do(t, "GET", "/v1/apps/sample", nil, "Authorization: Bearer "+harness.APIKey).Body, `"status":"running"`)
	})
}
