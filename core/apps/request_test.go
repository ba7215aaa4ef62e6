package apps

import (
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core"
)

func TestARequestThatCannotBeMeantIsRefusedNamingTheField(t *testing.T) {
	url := "http://127.0.0.1:1/mcp"
	for _, c := range []struct {
		name  string
		r     InstallRequest
		names string // what the message must mention
	}{
		{"no source", InstallRequest{}, "exactly one of name, path and url"},
		{"name and path", InstallRequest{Name: "a", Path: "/b"}, "exactly one"},
		{"path and url", InstallRequest{Path: "/b", URL: url}, "exactly one"},
		{"name and url", InstallRequest{Name: "a", URL: url}, "exactly one"},
		{"all three", InstallRequest{Name: "a", Path: "/b", URL: url}, "exactly one"},
		{"transport without url", InstallRequest{Path: "/b", Transport: &Transport{}}, "transport"},
		{"server name without url", InstallRequest{Path: "/b", ServerName: "x"}, "serverName"},
		{"a file URL", InstallRequest{URL: "file:///etc/passwd"}, "url"},
		{"a URL without a host", InstallRequest{URL: "http:///mcp"}, "url"},
		{"a URL with a password", InstallRequest{URL: "http://me:hunter2@host/mcp"}, "transport.auth"},
		{"an unknown transport", InstallRequest{URL: url, Transport: &Transport{Type: "stdio"}}, "transport.type"},
		{"an unknown auth", InstallRequest{URL: url, Transport: &Transport{Auth: &Auth{Type: "basic"}}}, "transport.auth.type"},
		{"a bearer without a token", InstallRequest{URL: url, Transport: &Transport{Auth: &Auth{Type: "bearer"}}}, "transport.auth.token"},
		{"a token with a line break", InstallRequest{URL: url, Transport: &Transport{Auth: &Auth{Type: "bearer", Token: "hunter2\nX: y"}}}, "transport.auth.token"},
		{"a header without a name", InstallRequest{URL: url, Transport: &Transport{Auth: &Auth{Type: "header", Value: "hunter2"}}}, "transport.auth"},
		{"a header without a value", InstallRequest{URL: url, Transport: &Transport{Auth: &Auth{Type: "header", Name: "X-Key"}}}, "transport.auth.value"},
		{"an extra header that is none", InstallRequest{URL: url, Transport: &Transport{Headers: map[string]core.Secret{"X Key": "hunter2"}}}, "transport.headers"},
		{"an extra header of the transport", InstallRequest{URL: url, Transport: &Transport{Headers: map[string]core.Secret{"mcp-session-id": "hunter2"}}}, "mcp-session-id"},
		{"a variable that is none", InstallRequest{URL: url, Env: map[string]core.Secret{"A=B": "hunter2"}}, "A=B"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := &memoryApp{}
			y, _ := yardOf(t, m, newMemoryRecords())
			_, err := y.Install(t.Context(), ws, c.r)
			expect(t, "code", core.CodeOf(err), core.CodeBadRequest)
			if err == nil || !strings.Contains(message(err), c.names) {
				t.Errorf("the message does not mention %q: %v", c.names, err)
			}
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the message gives a secret away: %v", err)
			}
			expect(t, "launches", len(m.started()), 0)
		})
	}
}

func TestTheServerNameOfARemoteApp(t *testing.T) {
	for _, c := range []struct{ name, url, wanted, want string }{
		{"is the last segment of the path", "https://host.test/a/Weather_Now", "", "weather-now"},
		{"with a slash at the end", "https://host.test/weather/", "", "weather"},
		{"is the host when there is no path", "https://weather.test:8443", "", "weather-test"},
		{"is the one that was asked for", "https://host.test/mcp", "My Server", "my-server"},
	} {
		t.Run(c.name, func(t *testing.T) {
			y, events := yardOf(t, &memoryApp{}, newMemoryRecords())
			app, err := y.Install(t.Context(), ws, InstallRequest{URL: c.url, ServerName: c.wanted})
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
