package apps

import (
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/source"
)

func TestAnInvalidRequestIsRejectedAndTheErrorNamesTheField(t *testing.T) {
	url := "http://127.0.0.1:1/mcp"
	for _, c := range []struct {
		name  string
		r     source.Request
		names string // what the message must mention
	}{
		{"no source", source.Request{}, "exactly one of name, path, url"},
		{"name and path", source.Request{Name: "a", Path: "/b"}, "exactly one"},
		{"path and url", source.Request{Path: "/b", URL: url}, "exactly one"},
		{"name and url", source.Request{Name: "a", URL: url}, "exactly one"},
		{"all three", source.Request{Name: "a", Path: "/b", URL: url}, "exactly one"},
		{"transport without url", source.Request{Path: "/b", Transport: &source.Transport{}}, "transport"},
		{"a file URL", source.Request{URL: "file:///etc/passwd"}, "url"},
		{"a URL without a host", source.Request{URL: "http:///mcp"}, "url"},
		{"a URL with a password", source.Request{URL: "http://me:hunter2@host/mcp"}, "transport.auth"},
		{"a URL of a bundle file", source.Request{URL: "https://host/a/App.mcpb?x=1"}, "download the file and install it by its path"},
		{"an unknown transport", source.Request{URL: url, Transport: &source.Transport{Type: "stdio"}}, "transport.type"},
		{"an unknown auth", source.Request{URL: url, Transport: &source.Transport{Auth: &source.Auth{Type: "basic"}}}, "transport.auth.type"},
		{"a bearer without a token", source.Request{URL: url, Transport: &source.Transport{Auth: &source.Auth{Type: "bearer"}}}, "transport.auth.token"},
		{"a token with a line break", source.Request{URL: url, Transport: &source.Transport{Auth: &source.Auth{Type: "bearer", Token: "hunter2\nX: y"}}}, "transport.auth.token"},
		{"a header without a name", source.Request{URL: url, Transport: &source.Transport{Auth: &source.Auth{Type: "header", Value: "hunter2"}}}, "transport.auth"},
		{"a header without a value", source.Request{URL: url, Transport: &source.Transport{Auth: &source.Auth{Type: "header", Name: "X-Key"}}}, "transport.auth.value"},
		{"an invalid extra header", source.Request{URL: url, Transport: &source.Transport{Headers: map[string]core.Secret{"X Key": "hunter2"}}}, "transport.headers"},
		{"an extra header of the transport", source.Request{URL: url, Transport: &source.Transport{Headers: map[string]core.Secret{"mcp-session-id": "hunter2"}}}, "mcp-session-id"},
		{"an invalid variable", source.Request{URL: url, Env: map[string]core.Secret{"A=B": "hunter2"}}, "A=B"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := &memoryApp{}
			y, _ := managerOf(t, m, newMemoryRecords())
			_, err := y.Install(t.Context(), ws, c.r)
			expect(t, "code", core.CodeOf(err), core.CodeBadRequest)
			if err == nil || !strings.Contains(core.TextOf(err), c.names) {
				t.Errorf("the message does not mention %q: %v", c.names, err)
			}
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the message gives away a secret: %v", err)
			}
			expect(t, "launches", len(m.started()), 0)
		})
	}
}

func TestTheServerNameOfARemoteApp(t *testing.T) {
	for _, c := range []struct{ name, url, wanted, want string }{
		{"is the last segment of the path", "https://host.test/a/Weather_Now", "", "weather-now"},
		{"with a trailing slash", "https://host.test/weather/", "", "weather"},
		{"is the host if there is no path", "https://weather.test:8443", "", "weather-test"},
		{"is the requested one", "https://host.test/mcp", "My Server", "my-server"},
	} {
		t.Run(c.name, func(t *testing.T) {
			y, events := managerOf(t, &memoryApp{}, newMemoryRecords())
			app, err := y.Install(t.Context(), ws, source.Request{URL: c.url, ServerName: c.wanted})
			if err != nil {
				t.Fatal(err)
			}
			expect(t, "name", app.Name, c.want)
			expect(t, "bundle name", app.BundleName, c.url)
			expect(t, "version", app.Version, "7.7.7")
			expect(t, "status", app.Status, core.StateRunning)
			expect(t, "trust score", app.TrustScore, 0)
			expectEvents(t, events, "bundle.installed")
		})
	}
}
