package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/ropewalk/ropewalk/internal/chaos"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// remoteRecorder is a remote MCP server that records its requests.
type remoteRecorder struct {
	mu   sync.Mutex
	seen []string
}

func (r *remoteRecorder) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	raw, err := httputil.DumpRequest(request, true)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	r.seen = append(r.seen, string(raw))
	r.mu.Unlock()
	var message struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params struct {
			ProtocolVersion string `json:"protocolVersion"`
		} `json:"params"`
	}
	if _, body, _ := strings.Cut(string(raw), "\r\n\r\n"); request.Method != http.MethodPost || json.Unmarshal([]byte(body), &message) != nil {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	if message.ID == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	result := `{}`
	switch message.Method {
	case "initialize":
		result = fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{"tools":{}},"serverInfo":{"name":"remote","version":"1"}}`, message.Params.ProtocolVersion)
	case "tools/list":
		result = `{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}`
	case "tools/call":
		result = `{"content":[{"type":"text","text":"called"}]}`
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, message.ID, result)
}

// A local app sees its environment and its messages, and a remote app sees its requests. None of these may contain the
// caller's credentials.
func TestNoAppGetsTheCallersToken(t *testing.T) {
	t.Parallel()
	const secret = "the-token-of-owner-canary"
	tokens := filepath.Join(t.TempDir(), "tokens.yaml")
	harness.WriteFile(t, tokens, "tokens:\n- {token: "+secret+", subject: owner, orgRole: owner, expires: 2099-01-01T00:00:00Z}\n")
	s := harness.Serve(t, harness.Config("auth: {adapter: static, audience: any, file: "+tokens+"}\nlimits: {sessions: 0}\n"), harness.Env("MCP_MAX_SESSIONS=1000"))
	recorder := &remoteRecorder{}
	remote := httptest.NewServer(recorder)
	t.Cleanup(remote.Close)
	bearer := "Authorization: Bearer " + secret
	for _, install := range []map[string]any{{"path": harness.GoBundle(t, "plain", harness.Plain)}, {"url": remote.URL + "/remote", "serverName": "remote"}} {
		if a := s.Do(t, "POST", "/v1/apps/install", install, bearer, harness.WorkspaceHeader); a.Status != http.StatusOK {
			t.Fatalf("install %v: %d %s", install, a.Status, a.Body)
		}
	}
	var workers sync.WaitGroup
	for worker := range callerWorkers {
		workers.Go(func() {
			for n := range callsWithToken / callerWorkers {
				if err := callBoth(t.Context(), s, secret, fmt.Sprintf("%d-%d", worker, n)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	workers.Wait()
	recorder.mu.Lock()
	defer recorder.mu.Unlock()
	found := 0
	for _, request := range recorder.seen {
		if strings.Contains(strings.ToLower(request), secret) {
			found++
			t.Errorf("the remote app got the token: %s", request)
		}
	}
	if len(recorder.seen) < callsWithToken/2 {
		t.Errorf("the remote app got only %d requests", len(recorder.seen))
	}
	chaos.Record(t, chaos.Row{Number: "14", Done: fmt.Sprintf("%d calls of a local and a remote app over /v1 and /mcp", 2*callsWithToken), Figure: fmt.Sprintf("%d with the token", found), Required: "0", OK: found == 0 && !t.Failed()})
}

const callerWorkers = 8

// callBoth calls the local app, which returns everything that it can see, and then the remote app.
func callBoth(ctx context.Context, s *harness.Server, secret, nonce string) error {
	for _, c := range []struct{ path, body string }{
		{"/v1/tools/call", `{"server":"plain","tool":"environment","arguments":{}}`},
		{"/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"remote__echo","arguments":{"n":"` + nonce + `"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`},
	} {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+c.path, strings.NewReader(c.body))
		if err != nil {
			return err
		}
		for name, value := range map[string]string{
			"Authorization": "Bearer " + secret, "Content-Type": "application/json", "Accept": "application/json, text/event-stream", "X-Workspace-Id": harness.Workspace,
			"Cookie": "other=" + secret, "X-Forwarded-Authorization": secret, "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "remote__echo",
		} {
			req.Header.Set(name, value)
		}
		if c.path != "/mcp" {
			for _, name := range []string{"MCP-Protocol-Version", "Mcp-Method", "Mcp-Name"} {
				req.Header.Del(name)
			}
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		raw, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil {
			return err
		}
		if resp.StatusCode != http.StatusOK || strings.Contains(string(raw), `"error"`) || strings.Contains(string(raw), secret) {
			return fmt.Errorf("%s: %d %s", c.path, resp.StatusCode, raw)
		}
	}
	return nil
}
