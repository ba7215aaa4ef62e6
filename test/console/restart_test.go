package console

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testenv"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// The server is killed during an answer, and the page shows that the server is unavailable. When the server runs again
// at the same address, the page receives events again, shows that the answer was interrupted, and lets the user
// continue the chat.
func TestAPageKeepsWorkingAfterItsServerIsKilledAndRestarted(t *testing.T) {
	t.Parallel()
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		delta := `data: {"id":"1","choices":[{"index":0,"delta":{"content":%q}}]}` + "\n\n"
		if strings.Contains(string(body), "go on") || strings.Contains(string(body), "Write a title") {
			_, _ = fmt.Fprintf(w, delta, "The other half.")
			_, _ = io.WriteString(w, "data: {\"id\":\"1\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
			return
		}
		_, _ = fmt.Fprintf(w, delta, "The first half")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done() // wait until the server has exited
	}))
	t.Cleanup(provider.Close)
	port := testenv.FreePort(t)
	s := serve(t, "models:\n  default: local:test\n  providers:\n    local: {type: openai, apiKey: k, baseUrl: '"+provider.URL+"'}\n", "--sample", "--port", fmt.Sprint(port))
	browse(t, "restart.mjs", s, map[string]any{"control": killer(t, s)})
}

// killer returns the address of a control server. A request for /kill kills s, and a request for any other path starts
// it again.
func killer(t *testing.T, s *harness.Server) string {
	t.Helper()
	control := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/kill" {
			s.Kill()
		} else {
			s.Start()
		}
	}))
	t.Cleanup(control.Close)
	return control.URL
}
