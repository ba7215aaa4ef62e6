package accounts

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ropewalk/ropewalk/core/store/seal"
	"github.com/ropewalk/ropewalk/internal/testenv"
	"github.com/ropewalk/ropewalk/internal/testkit"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// app is a remote MCP server that lets in who has a token of the provider for it. Its tools say whose it was.
type app struct {
	URL      string
	provider *testenv.OpenIDProvider
	lacking  atomic.Pointer[map[string]bool] // tokens that lack the right to change

	mu      sync.Mutex
	calls   []string // "tool subject"
	bearers map[string]bool
}

// claims are what the tests read in a token.
type claims struct {
	Subject  string `json:"sub"`
	Audience string `json:"aud"`
	Expires  int64  `json:"exp"`
	ID       string `json:"jti"`
}

type subjectKey struct{}

// startApp starts an app at /mcp and its authorization server, whose access tokens last for some seconds.
func startApp(t *testing.T, seconds int) *app {
	t.Helper()
	a := &app{provider: testenv.StartAuthorizationServer(t, seconds), bearers: map[string]bool{}}
	server := mcp.NewServer(&mcp.Implementation{Name: "far", Version: "1.2.3"}, nil)
	tool := func(name string, readOnly bool) {
		mcp.AddTool(server, &mcp.Tool{Name: name, Annotations: &mcp.ToolAnnotations{ReadOnlyHint: readOnly}},
			func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
				who, _ := ctx.Value(subjectKey{}).(string)
				a.mu.Lock()
				a.calls = append(a.calls, name+" "+who)
				a.mu.Unlock()
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: who}}}, nil, nil
			})
	}
	tool("whoami", true)
	tool("change", false)
	served := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/.well-known/oauth-protected-resource") {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(map[string]any{"resource": a.URL, "authorization_servers": []string{a.provider.Issuer}, "scopes_supported": []string{"tools"}})
			return
		}
		bearer := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		token, ok := read(bearer)
		if !ok || token.Audience != a.URL || token.Expires <= time.Now().Unix() {
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+strings.TrimSuffix(a.URL, "/mcp")+`/.well-known/oauth-protected-resource/mcp"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client has left
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if lacking := a.lacking.Load(); lacking != nil && (*lacking)[bearer] && bytes.Contains(body, []byte(`"change"`)) {
			w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="tools"`)
			w.WriteHeader(http.StatusForbidden)
			return
		}
		a.mu.Lock()
		a.bearers[bearer] = true
		a.mu.Unlock()
		served.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), subjectKey{}, token.Subject)))
	}))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	a.URL = s.URL + "/mcp"
	return a
}

// read reads a token without verifying it: the provider is the only one here.
func read(token string) (c claims, ok bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return c, false
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	return c, err == nil && json.Unmarshal(payload, &c) == nil
}

// seen returns how often a tool was called for a person.
func (a *app) seen(call string) (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, one := range a.calls {
		if one == call {
			n++
		}
	}
	return n
}

// tokens returns how many different tokens the app got.
func (a *app) tokens() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.bearers)
}

// serve starts a server with a key of its state, and installs the app as far.
func serve(t *testing.T, a *app, options ...harness.Option) *harness.Server {
	t.Helper()
	s := harness.Serve(t, append([]harness.Option{harness.Env("ROPEWALK_STORAGE_KEY=" + seal.NewKey().Reveal())}, options...)...)
	if got := s.Install(t, map[string]any{"url": a.URL, "serverName": "far"}); got.Status != "running" {
		t.Fatalf("the app is %+v", got)
	}
	return s
}

// link links an account of the person of the dev mode, in a browser.
func link(t *testing.T, s *harness.Server, b *harness.Browser, name string) {
	t.Helper()
	begun := s.Object(t, "POST", "/v1/accounts", map[string]any{"app": "far", "name": name})
	agree(t, s, b, begun["url"].(string))
}

// agree opens the page of a link, agrees, and logs in.
func agree(t *testing.T, s *harness.Server, b *harness.Browser, address string) {
	t.Helper()
	if page, text := b.Read(t, address); page.StatusCode != 200 || !strings.Contains(text, "Continue to log in") {
		t.Fatalf("the page: %d %s", page.StatusCode, text)
	}
	if page, text := b.Submit(t, address, nil); page.StatusCode != 200 || !strings.Contains(text, "The account is linked") {
		t.Fatalf("at the end, at %s: %d %s", b.At, page.StatusCode, text)
	}
	if !testkit.Within(harness.Timeout, func() bool { return strings.Contains(s.Do(t, "GET", "/v1/tools", nil).Body, "far__whoami") }) {
		t.Fatal("the tools of the app are not listed")
	}
}

// accountsOf returns the accounts that a caller sees.
func accountsOf(t *testing.T, s *harness.Server, headers ...string) []map[string]any {
	t.Helper()
	answer := s.Do(t, "GET", "/v1/accounts", nil, headers...)
	var listed struct{ Accounts []map[string]any }
	if err := json.Unmarshal([]byte(answer.Body), &listed); err != nil || answer.Status != http.StatusOK {
		t.Fatalf("%d %s", answer.Status, answer.Body)
	}
	return listed.Accounts
}
