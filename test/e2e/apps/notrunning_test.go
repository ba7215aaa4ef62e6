package apps

import (
	"net/http"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

func TestBothEndpointsSuggestStartingAStoppedApp(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t)
	s.Install(t, map[string]any{"path": harness.GoBundle(t, "fake", harness.Plain)})
	session := s.OpenSession(t)
	if a := s.Do(t, "POST", "/v1/apps/fake/stop", nil); a.Status != http.StatusOK {
		t.Fatalf("stop: %d %s", a.Status, a.Body)
	}
	const wantText = `app \"fake\" is stopped; start it first`
	a := s.Do(t, "POST", "/v1/tools/call", map[string]any{"server": "fake", "tool": "echo", "arguments": map[string]any{"text": "x"}})
	if want := `{"error":"unavailable","message":"` + wantText + `"}`; a.Status != http.StatusServiceUnavailable || a.Body != want {
		t.Errorf("/v1/tools/call: %d %s", a.Status, a.Body)
	}
	_, _, body, err := session.Post(t.Context(), `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"fake__echo","arguments":{"text":"x"}}}`)
	if err != nil || !strings.Contains(string(body), wantText) {
		t.Errorf("/mcp: %s (%v)", body, err)
	}
}
