package console

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"testing"
)

// canary is a server that records the requests it receives. No view may send it any.
type canary struct {
	*httptest.Server
	mu   sync.Mutex
	hits []string
}

func newCanary(t *testing.T) *canary {
	c := &canary{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.hits = append(c.hits, r.Method+" "+r.URL.String())
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *canary) heard() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hits
}

// hostileBundle copies the app in testdata/hostile, gives its views the canary's address, and returns the copy's
// directory and the names of the attacks.
func hostileBundle(t *testing.T, at string) (dir string, attacks []string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "hostile")
	if err := os.CopyFS(dir, os.DirFS("testdata/hostile")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "canary"), []byte(at), 0o600); err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("testdata/hostile/attacks.mjs")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^  "([a-z-]+)":`).FindAllSubmatch(source, -1) {
		attacks = append(attacks, string(m[1]))
	}
	if len(attacks) < 60 {
		t.Fatalf("only %d attacks", len(attacks))
	}
	return dir, attacks
}

// Hostile views cannot read anything from the page or the browser, send anything, or navigate to another page.
func TestHostileViewsCannotReadOrSendAnything(t *testing.T) {
	t.Parallel()
	c := newCanary(t)
	dir, attacks := hostileBundle(t, c.URL)
	s := serve(t, "", "--sample")
	s.Object(t, "POST", "/v1/apps/install", map[string]any{"path": dir})
	browse(t, "hostile.mjs", s, map[string]any{"attacks": attacks, "canary": c.URL})
	if hits := c.heard(); len(hits) > 0 {
		t.Errorf("views sent something: %q", hits)
	}
}

// The published apps of the MCP Apps examples show their views, and the views work.
func TestPublishedViewsRenderAndWork(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	var tools []string
	for name, tool := range map[string]string{
		"basic-react": "get-time", "basic-vanillajs": "get-time", "budget-allocator": "get-budget-data", "cohort-heatmap": "get-cohort-data",
		"customer-segmentation": "get-customer-data", "scenario-modeler": "get-scenario-data",
	} {
		s.Object(t, "POST", "/v1/apps/install", map[string]any{"path": bundle(t, "@modelcontextprotocol/server-"+name, nil, "--stdio")})
		tools = append(tools, name+"__"+tool)
	}
	browse(t, "views.mjs", s, map[string]any{"tools": tools})
}
