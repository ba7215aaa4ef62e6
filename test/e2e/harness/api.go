package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testkit"
)

// APIKey is the API key of all test servers that need a key.
const APIKey = "e2e-key-0123456789"

// Response is an HTTP response whose body was read completely.
type Response struct {
	Status int
	Header http.Header
	Body   string
}

// Do sends a request. A body that is a string is sent unchanged. Any other body except nil is encoded as JSON. Headers
// have the form "Name: value". Do itself sets only Content-Type.
func (s *Server) Do(t *testing.T, method, path string, body any, headers ...string) Response {
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
	req, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, content)
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
	return Exchange(t, req)
}

// Object sends a request with the server's Key and returns the JSON object in the response. The test fails if the
// request fails.
func (s *Server) Object(t *testing.T, method, path string, body any) map[string]any {
	t.Helper()
	var headers []string
	if s.Key != "" {
		headers = append(headers, "Authorization: Bearer "+s.Key)
	}
	a := s.Do(t, method, path, body, headers...)
	if a.Status >= 300 {
		t.Fatalf("%s %s: %d %s", method, path, a.Status, a.Body)
	}
	return a.Object(t)
}

// Exchange sends a request and reads the response. It does not follow redirects.
func Exchange(t *testing.T, req *http.Request) Response {
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
	return Response{resp.StatusCode, resp.Header, string(raw)}
}

// Object decodes the body. It must be a JSON object, or a stream of events whose last message is one.
func (a Response) Object(t *testing.T) map[string]any {
	t.Helper()
	var o map[string]any
	if err := json.Unmarshal([]byte(LastMessage(a.Body)), &o); err != nil {
		t.Fatalf("%d is not a JSON object: %q", a.Status, a.Body)
	}
	return o
}

// App is an app as the API returns it (docs/api.md 3.1).
type App struct {
	Name, BundleName, Version, Status, Type string
	ToolCount                               int
	Asleep                                  bool
	UI                                      *struct {
		Name, Icon  string
		PrimaryView struct{ ResourceURI string }
	}
}

// Install installs an app and returns it. The test fails if the app is not running afterwards.
func (s *Server) Install(t *testing.T, request map[string]any) App {
	t.Helper()
	a := s.Do(t, "POST", "/v1/apps/install", request)
	var installed App
	if a.Status != 200 || json.Unmarshal([]byte(a.Body), &installed) != nil || installed.Status != "running" {
		t.Fatalf("install %v: %d %s", request, a.Status, a.Body)
	}
	return installed
}

// Apps returns the apps that GET /v1/apps lists, by name.
func (s *Server) Apps(t *testing.T, headers ...string) map[string]App {
	t.Helper()
	var list struct{ Apps []App }
	if a := s.Do(t, "GET", "/v1/apps", nil, headers...); a.Status != 200 || json.Unmarshal([]byte(a.Body), &list) != nil {
		t.Fatalf("GET /v1/apps: %d %s", a.Status, a.Body)
	}
	byName := map[string]App{}
	for _, a := range list.Apps {
		byName[a.Name] = a
	}
	return byName
}

// WaitForStatus waits until an app has the status. The headers are the credentials of someone who may list apps.
func (s *Server) WaitForStatus(t *testing.T, name, status string, headers ...string) {
	t.Helper()
	if !testkit.Within(Timeout, func() bool { return s.Apps(t, headers...)[name].Status == status }) {
		t.Fatalf("%s: got status %q, want %q", name, s.Apps(t, headers...)[name].Status, status)
	}
}

// Call calls a tool and returns the member "result" of the response, which is the text, or its value if the text is
// JSON. The test fails if the call fails.
func (s *Server) Call(t *testing.T, server, tool string, arguments map[string]any) any {
	t.Helper()
	a := s.Do(t, "POST", "/v1/tools/call", map[string]any{"server": server, "tool": tool, "arguments": arguments})
	if a.Status != 200 || a.Object(t)["isError"] != false {
		t.Fatalf("call %s on %s: %d %s", tool, server, a.Status, a.Body)
	}
	return a.Object(t)["result"]
}

// List decodes the body as a JSON array of objects.
func List(t *testing.T, a Response) []map[string]any {
	t.Helper()
	var l []map[string]any
	if err := json.Unmarshal([]byte(a.Body), &l); err != nil {
		t.Fatalf("%d is not a JSON array of objects: %q", a.Status, a.Body)
	}
	return l
}

// ToText returns a tool's result as JSON text.
func ToText(t *testing.T, result any) string {
	t.Helper()
	raw, err := json.Marshal(result)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// SharedFile returns the path of a file in an app's data directory. Both the test and the app can use the file.
func (s *Server) SharedFile(app, name string) string {
	return filepath.Join(s.Home, "apps", app, "data", name)
}

// BeginCall calls the tool named last, which runs until the file exists. BeginCall returns when the call has started.
func (s *Server) BeginCall(ctx context.Context, t *testing.T, app, file string) (ended <-chan Response) {
	t.Helper()
	body := fmt.Sprintf(`{"server":%q,"tool":"last","arguments":{"text":%q}}`, app, file)
	req, err := http.NewRequestWithContext(ctx, "POST", s.URL+"/v1/tools/call", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	done := make(chan Response, 1)
	go func() {
		if resp, err := http.DefaultClient.Do(req); err == nil {
			defer resp.Body.Close()
			raw, _ := io.ReadAll(resp.Body)
			done <- Response{resp.StatusCode, resp.Header, string(raw)}
		}
	}()
	if !testkit.Within(Timeout, func() bool { _, err := os.Stat(file + ".begun"); return err == nil }) {
		t.Fatal("the call did not begin")
	}
	return done
}
