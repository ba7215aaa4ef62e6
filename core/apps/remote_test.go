package apps

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/core/apps/source"
	"github.com/ropewalk/ropewalk/core/link"
	"github.com/ropewalk/ropewalk/core/link/remote"
	"github.com/ropewalk/ropewalk/internal/testkit"
)

// remoteServer is a remote MCP server that accepts requests with the given header.
func remoteServer(t *testing.T, header, value string, sse bool) *httptest.Server {
	t.Helper()
	get := func(*http.Request) *mcp.Server { return bundleServer(modeNormal) }
	var served http.Handler = mcp.NewStreamableHTTPHandler(get, nil)
	if sse {
		served = mcp.NewSSEHandler(get, nil)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if header != "" && r.Header.Get(header) != value {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		served.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

func private(o *Options) { o.Remote = remote.Options{AllowPrivate: true} }

func TestRemoteAppsAreReachedOverTheirConfiguredTransport(t *testing.T) {
	for _, c := range []struct {
		name, header, value string
		transport           *source.Transport
	}{
		{"no transport", "", "", nil},
		{"streamable HTTP without auth", "", "", &source.Transport{Type: "streamable-http", Auth: &source.Auth{Type: "none"}}},
		{"SSE", "", "", &source.Transport{Type: "sse"}},
		{"a bearer", "Authorization", "Bearer t0ken-t0ken", &source.Transport{Auth: &source.Auth{Type: "bearer", Token: "t0ken-t0ken"}}},
		{"a header", "X-Key", "t0ken-t0ken", &source.Transport{Auth: &source.Auth{Type: "header", Name: "X-Key", Value: "t0ken-t0ken"}}},
		{"extra headers", "X-Extra", "t0ken-t0ken", &source.Transport{Headers: map[string]core.Secret{"X-Extra": "t0ken-t0ken"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := remoteServer(t, c.header, c.value, c.transport != nil && c.transport.Type == "sse")
			y, events := realManager(t, t.TempDir(), newMemoryRecords(), private)
			app := install(t, y, source.Request{URL: s.URL + "/far", Transport: c.transport})
			expectApp(t, "result", app, core.App{Name: "far", BundleName: s.URL + "/far", Version: "9.9.9", Status: core.StateRunning, Type: "plain", ToolCount: 5})
			if text, err := callTool(t, y, "far", "echo", "hello"); err != nil || text != "hello" {
				t.Errorf("echo: %q, %v", text, err)
			}
			expectEvents(t, events, "bundle.installed")
		})
	}
}

func TestARemoteAppThatCannotBeReachedIsNotInstalled(t *testing.T) {
	guarded := remoteServer(t, "Authorization", "Bearer right-right", false)
	down := httptest.NewServer(http.NotFoundHandler())
	down.Close()
	for _, c := range []struct {
		name string
		url  string
		open bool
		says string
	}{
		{"wrong credentials", guarded.URL + "/far", true, "401"},
		{"nothing is listening", down.URL + "/far", true, "remote server"},
		{"an address that apps may not connect to", guarded.URL + "/far", false, "may not connect to"},
	} {
		t.Run(c.name, func(t *testing.T) {
			y, _ := realManager(t, t.TempDir(), newMemoryRecords(), nil)
			_, err := y.Install(t.Context(), ws, source.Request{
				URL: c.url, AllowPrivate: c.open, Transport: &source.Transport{Auth: &source.Auth{Type: "bearer", Token: "wrong-wrong"}},
			})
			expect(t, "code", core.CodeOf(err), core.CodeInstallFailed)
			if !strings.Contains(core.TextOf(err), c.says) || strings.Contains(err.Error(), "wrong-wrong") {
				t.Errorf("the message is %v; want it to contain %q and no secret", err, c.says)
			}
		})
	}
}

// forgetfulServer is a remote MCP server that can lose its sessions.
func forgetfulServer(t *testing.T) (s *httptest.Server, down *atomic.Bool) {
	t.Helper()
	down = new(atomic.Bool)
	server := bundleServer(modeNormal)
	served := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
	s = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if down.Load() {
			w.WriteHeader(http.StatusNotFound) // "the session is gone"
			return
		}
		served.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		for session := range server.Sessions() { // the session that was lost
			_ = session.Close()
		}
		s.CloseClientConnections()
		s.Close()
	})
	return s, down
}

func TestALostRemoteServerIsReachedAgainWhenItIsBack(t *testing.T) {
	s, down := forgetfulServer(t)
	y, events := realManager(t, t.TempDir(), newMemoryRecords(), func(o *Options) {
		private(o)
		o.Policy = &Policy{Delays: []time.Duration{0, time.Millisecond}, HealthyAfter: time.Minute}
	})
	install(t, y, source.Request{URL: s.URL + "/far"})
	down.Store(true)
	if _, err := callTool(t, y, "far", "echo", "lost"); err == nil {
		t.Fatal("a call succeeded although the server had lost the session")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	if err := events.wait(ctx, "bundle.crashed 2", 1); err != nil {
		t.Fatal(err)
	}
	down.Store(false)
	if err := events.wait(ctx, "bundle.recovered", 1); err != nil {
		t.Fatal(err)
	}
	expectEvents(t, events, "bundle.installed", "bundle.crashed 1", "bundle.crashed 2", "bundle.recovered")
	if text, err := callTool(t, y, "far", "echo", "back"); err != nil || text != "back" {
		t.Errorf("echo: %q, %v", text, err)
	}
}

// The query of a remote app's address may contain its key, which other members of the workspace must not see.
func TestARemoteAppsURLQueryIsShownToNobody(t *testing.T) {
	const secret = "s3cret-s3cret"
	s, down := forgetfulServer(t)
	y, events := realManager(t, t.TempDir(), newMemoryRecords(), func(o *Options) {
		private(o)
		o.Policy = &Policy{Delays: []time.Duration{0}, HealthyAfter: time.Minute}
	})
	install(t, y, source.Request{URL: s.URL + "/far?key=" + secret})
	running, err := y.Details(ws, "far")
	if err != nil {
		t.Fatal(err)
	}
	expect(t, "bundle name", running.BundleName, s.URL+"/far")
	expect(t, "source", running.Source.Ref, s.URL+"/far")
	down.Store(true)
	_, lost := callTool(t, y, "far", "echo", "lost")
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	if err := events.wait(ctx, "bundle.crashed 1", 1); err != nil {
		t.Fatal(err)
	}
	_, again := y.Install(t.Context(), ws, source.Request{URL: s.URL + "/other?key=" + secret})
	stopped, err := y.Details(ws, "far")
	if lost == nil || again == nil || err != nil || stopped.LastError == "" {
		t.Fatalf("with the server down: %v, %v, %+v, %v", lost, again, stopped, err)
	}
	for what, shown := range map[string]any{"details": running, "details when it is down": stopped, "events": events.all(), "error of a call": lost.Error()} {
		if text := fmt.Sprintf("%+v", shown); strings.Contains(text, secret) {
			t.Errorf("%s: %s", what, text)
		}
	}
}

// shop is a remote app that speaks the new revision of MCP. Its only tool returns the region in its header.
func shop(t *testing.T, schema string) (url string, change func(schema string)) {
	t.Helper()
	server := mcp.NewServer(&mcp.Implementation{Name: "shop", Version: "1"}, nil)
	change = func(schema string) {
		server.AddTool(&mcp.Tool{Name: "sell", InputSchema: json.RawMessage(schema)}, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: r.Extra.Header.Get("Mcp-Param-Region")}}}, nil
		})
	}
	change(schema)
	s := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true}))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.URL + "/shop", change
}

const markedRegion = `{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}`

// sell calls the shop's tool like a client that speaks the new revision.
func sell(t *testing.T, y *Manager) (string, error) {
	t.Helper()
	params := json.RawMessage(`{"name":"sell","arguments":{"region":"é"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}`)
	result, err := y.Call(t.Context(), ws, "shop", &interact.Call{Request: link.Request{Method: "tools/call", Params: params, Mirrors: y.Tools(ws)[0].Mirrors}, Client: interact.NewClient("", true, nil), Owner: "alice"})
	return string(result), err
}

func TestAStatelessRemoteAppGetsMarkedArgumentsInHeaders(t *testing.T) {
	url, _ := shop(t, markedRegion)
	y, _ := realManager(t, t.TempDir(), newMemoryRecords(), private)
	install(t, y, source.Request{URL: url})
	if result, err := sell(t, y); err != nil || !strings.Contains(result, `"text":"=?base64?w6k=?="`) {
		t.Errorf("got %s (%v)", result, err)
	}
}

func TestToolsAreReadAgainWhenTheirHeadersAreRefused(t *testing.T) {
	url, change := shop(t, `{"type":"object"}`)
	y, _ := realManager(t, t.TempDir(), newMemoryRecords(), private)
	install(t, y, source.Request{URL: url})
	change(markedRegion) // without a notification
	if _, err := sell(t, y); !isCode(err, -32020) {
		t.Fatalf("without the header: %v", err)
	}
	testkit.Eventually(t, "the tools are read again", func() bool {
		result, err := sell(t, y)
		expect(t, "the header in a result", strings.Contains(result, `"text":"=?base64?w6k=?="`), err == nil)
		return err == nil
	})
}
