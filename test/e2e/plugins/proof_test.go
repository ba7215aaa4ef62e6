package plugins

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core/pluginhost"
	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

const boundName = "auth-bound"

// bound is an auth adapter whose tokens are the names of their owners. If a name starts with "bound", the owner must
// prove possession of the token with "<method> <url> <number>" in the DPoP header. Each number can be used only once.
// If a name ends in "-operator", the owner is in the group operators.
type bound struct {
	mu   sync.Mutex
	seen map[string]bool
}

func (*bound) VerifiesRequests() {}

func (*bound) Describe(context.Context) (auth.Description, error) {
	return auth.Description{Issuer: "https://bound.example", AuthorizationServers: []string{"https://bound.example"}}, nil
}

func (*bound) Metadata(context.Context) (json.RawMessage, error) { return nil, plugins.ErrNotFound }

func (b *bound) Verify(_ context.Context, req auth.VerifyRequest) (auth.Identity, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	proof := req.Headers["dpop"]
	if strings.HasPrefix(req.Token, "bound") && (!strings.HasPrefix(proof, req.Method+" "+req.URL+" ") || b.seen[proof]) {
		return auth.Identity{}, fmt.Errorf("%q proves nothing for %s %s: %w", proof, req.Method, req.URL, plugins.ErrUnauthenticated)
	}
	if b.seen == nil {
		b.seen = map[string]bool{}
	}
	b.seen[proof] = true
	id := auth.Identity{Issuer: "https://bound.example", Subject: req.Token, ExpiresAt: time.Now().Add(time.Hour), Claims: json.RawMessage(`{"department":"a"}`)}
	if strings.HasSuffix(req.Token, "-operator") {
		id.Groups = []string{"staff", "operators"}
	}
	return id, nil
}

// A third-party adapter checks the proofs of tokens on both endpoints, and its groups determine the admins.
func TestAPluginChecksProofsAndReportsGroups(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), boundName)
	if err := os.WriteFile(path, content, 0o755); err != nil {
		t.Fatal(err)
	}
	sum, err := pluginhost.HashFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s := harness.Serve(t, harness.Flags("--sample"), harness.Config(fmt.Sprintf("auth: {adapter: bound, path: %s, sha256: %s, audience: any, admins: [operators]}\n", path, sum)))
	n := 0
	proof := func(method, url string) string { n++; return fmt.Sprintf("%s %s %d", method, url, n) }
	users := s.URL + "/v1/users"
	status := func(credentials ...string) int {
		var headers []string
		for i := 0; i+1 < len(credentials); i += 2 {
			headers = append(headers, credentials[i]+": "+credentials[i+1])
		}
		return s.Do(t, http.MethodGet, "/v1/users?limit=5", nil, headers...).Status
	}
	want := func(name string, got, want int) {
		t.Helper()
		if got != want {
			t.Errorf("%s: got %d, want %d", name, got, want)
		}
	}
	want("no proof", status("Authorization", "Bearer bound-operator"), http.StatusUnauthorized)
	once := proof("GET", users)
	want("a proof", status("Authorization", "DPoP bound-operator", "DPoP", once), http.StatusOK)
	want("the same proof", status("Authorization", "DPoP bound-operator", "DPoP", once), http.StatusUnauthorized)
	want("no proof after a valid proof", status("Authorization", "DPoP bound-operator"), http.StatusUnauthorized)
	want("another proof", status("Authorization", "DPoP bound-operator", "DPoP", proof("GET", users)), http.StatusOK)
	want("a proof for another method", status("Authorization", "DPoP bound-operator", "DPoP", proof("POST", users)), http.StatusUnauthorized)
	want("a proof for another URL", status("Authorization", "DPoP bound-operator", "DPoP", proof("GET", s.URL+"/v1/tools")), http.StatusUnauthorized)
	want("a proof by someone in no group", status("Authorization", "DPoP bound-guest", "DPoP", proof("GET", users)), http.StatusForbidden)
	want("an unbound token", status("Authorization", "Bearer free-operator"), http.StatusOK)

	client := &harness.MCPClient{URL: s.URL, Headers: []string{"Authorization", "DPoP bound-operator", "DPoP", proof("POST", s.URL+"/mcp")}}
	for i, good := range []bool{true, false} { // the second request repeats the first request's proof
		got, _, body, err := client.Post(t.Context(), harness.Initialize)
		if err != nil || (got == http.StatusUnauthorized) == good {
			t.Errorf("request %d to /mcp: got %d %s, %v", i+1, got, body, err)
		}
	}
}
