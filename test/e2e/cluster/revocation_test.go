package cluster

import (
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

const (
	tokenOfAlice = "the-token-of-alice-1"
	tokenOfBob   = "the-token-of-bob-001"
)

// tokenFile returns the content of a token file with these tokens.
func tokenFile(tokens ...string) string {
	text := "tokens:\n"
	for _, token := range tokens {
		subject := strings.Split(token, "-")[3]
		text += "  - {token: " + token + ", subject: " + subject + ", expires: 2099-01-01T00:00:00Z}\n"
	}
	return text
}

// If one server no longer accepts a token, the token's sessions end on every server, even on a server that still
// accepts the token.
func TestATokenRevokedOnOneServerEndsSessionsAndStreamsOnAll(t *testing.T) {
	t.Parallel()
	database := harness.Databases.New(t)
	serve := func(tokens string) *harness.Server {
		return harness.Serve(t, func(s *harness.Server) { s.Database = database },
			harness.Config("auth: {adapter: static, audience: any, join: {workspace: ws_default}, file: "+tokens+"}\nstorage: {url: '"+database+"'}\n"),
			harness.Env("SERVICE_API_KEY="+harness.APIKey))
	}
	files := []string{filepath.Join(t.TempDir(), "a.yaml"), filepath.Join(t.TempDir(), "b.yaml")}
	for _, file := range files {
		harness.WriteFile(t, file, tokenFile(tokenOfAlice, tokenOfBob))
	}
	a, b := serve(files[0]), serve(files[1])
	alice := []*harness.MCPClient{a.OpenSession(t, "Authorization", "Bearer "+tokenOfAlice), b.OpenSession(t, "Authorization", "Bearer "+tokenOfAlice)}
	bob := b.OpenSession(t, "Authorization", "Bearer "+tokenOfBob)
	ended := streamEnds(t, alice[1])

	began := time.Now()
	harness.WriteFile(t, files[0], tokenFile(tokenOfBob))
	waitFor(t, "the server that revoked the token refuses it", func() bool { return pings(t, alice[0]) == http.StatusUnauthorized })
	waitFor(t, "the token's session on the other server ends", func() bool { return pings(t, alice[1]) == http.StatusNotFound })
	select {
	case <-ended:
	case <-time.After(harness.Timeout):
		t.Error("the stream of the session on the other server should be closed")
	}
	t.Logf("ended everywhere %v after the token was removed from the file", time.Since(began))
	if got := pings(t, bob); got != http.StatusOK {
		t.Errorf("another person's session gets %d", got)
	}
}

func pings(t *testing.T, c *harness.MCPClient) int {
	t.Helper()
	status, _, _, err := c.Post(t.Context(), harness.Ping)
	if err != nil {
		t.Fatal(err)
	}
	return status
}

// streamEnds opens the GET stream of a session. It returns a channel that is closed when the stream ends.
func streamEnds(t *testing.T, c *harness.MCPClient) <-chan struct{} {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.URL+"/mcp", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("X-Workspace-Id", harness.Workspace)
	req.Header.Set("Mcp-Session-Id", c.Session)
	req.Header.Set(c.Headers[0], c.Headers[1])
	resp, err := http.DefaultClient.Do(req)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("cannot open the stream: %v %v", resp, err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer resp.Body.Close()
		_, _ = io.Copy(io.Discard, resp.Body)
	}()
	return ended
}
