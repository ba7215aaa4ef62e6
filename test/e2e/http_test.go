package e2e

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
)

// answer is what the server answered, read to its end.
type answer struct {
	status int
	header http.Header
	body   string
}

// do sends a request. The body is text as it stands, nothing, or a value that becomes JSON; headers
// are "Name: value". Nothing is sent that is not said here, but a JSON body is called JSON.
func (s *server) do(t *testing.T, method, path string, body any, headers ...string) answer {
	t.Helper()
	var content io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		content = strings.NewReader(b)
	default:
		raw, err := json.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		content = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, s.url+path, content)
	if err != nil {
		t.Fatal(err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if req.Header.Set(name, value); name == "Host" {
			req.Host = value
		}
	}
	return exchange(t, req)
}

func exchange(t *testing.T, req *http.Request) answer {
	t.Helper()
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatalf("%s %s: %v", req.Method, req.URL.Path, err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", req.Method, req.URL.Path, err)
	}
	return answer{resp.StatusCode, resp.Header, string(raw)}
}

// object is the answer's JSON object.
func (a answer) object(t *testing.T) map[string]any {
	t.Helper()
	var o map[string]any
	if err := json.Unmarshal([]byte(a.body), &o); err != nil {
		t.Fatalf("%d is not a JSON object: %q", a.status, a.body)
	}
	return o
}

// app is an App (docs/api.md 3.1).
type app struct {
	Name, BundleName, Version, Status, Type string
	ToolCount                               int
	UI                                      *struct {
		Name, Icon  string
		PrimaryView struct{ ResourceURI string }
	}
}

// install installs and returns the app, which runs then.
func (s *server) install(t *testing.T, request map[string]any) app {
	t.Helper()
	a := s.do(t, "POST", "/v1/apps/install", request)
	var installed app
	if a.status != 200 || json.Unmarshal([]byte(a.body), &installed) != nil || installed.Status != "running" {
		t.Fatalf("install %v: %d %s", request, a.status, a.body)
	}
	return installed
}

// apps is what GET /v1/apps shows, by name.
func (s *server) apps(t *testing.T) map[string]app {
	t.Helper()
	var list struct{ Apps []app }
	if a := s.do(t, "GET", "/v1/apps", nil); a.status != 200 || json.Unmarshal([]byte(a.body), &list) != nil {
		t.Fatalf("GET /v1/apps: %d %s", a.status, a.body)
	}
	byName := map[string]app{}
	for _, a := range list.Apps {
		byName[a.Name] = a
	}
	return byName
}

// reaches waits until an app has a status.
func (s *server) reaches(t *testing.T, name, status string) {
	t.Helper()
	if !eventually(patience, func() bool { return s.apps(t)[name].Status == status }) {
		t.Fatalf("%s is %q, not %q", name, s.apps(t)[name].Status, status)
	}
}

// call calls a tool that must succeed, and returns `result`: the text, or the JSON it is.
func (s *server) call(t *testing.T, server, tool string, arguments map[string]any) any {
	t.Helper()
	a := s.do(t, "POST", "/v1/tools/call", map[string]any{"server": server, "tool": tool, "arguments": arguments})
	if a.status != 200 || a.object(t)["isError"] != false {
		t.Fatalf("call %s of %s: %d %s", tool, server, a.status, a.body)
	}
	return a.object(t)["result"]
}

// list is the answer's JSON array of objects.
func list(t *testing.T, a answer) []map[string]any {
	t.Helper()
	var l []map[string]any
	if err := json.Unmarshal([]byte(a.body), &l); err != nil {
		t.Fatalf("%d is not a JSON array of objects: %q", a.status, a.body)
	}
	return l
}

// toText is a tool's result as text, whether it was JSON or not.
func toText(t *testing.T, result any) string {
	t.Helper()
	raw, err := json.Marshal(result)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
