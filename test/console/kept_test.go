package console

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testenv"
)

// Files, drafts and messages survive failures of the browser and the server. Several files are sent at once,
// and again in a branch. A draft survives a reload. A message that did not reach the server waits for a Retry.
func TestNothingThatAUserWroteOrSentIsLost(t *testing.T) {
	t.Parallel()
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var asked struct{ Model string }
		_ = json.Unmarshal(body, &asked)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprintf(w, `data: {"id":"1","choices":[{"index":0,"delta":{"content":"Seen by %s."}}]}`+"\n\n", asked.Model)
		_, _ = io.WriteString(w, "data: {\"id\":\"1\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(provider.Close)
	port := testenv.FreePort(t)
	s := serve(t, "models:\n  default: local:test\n  providers:\n    local: {type: openai, apiKey: k, baseUrl: '"+provider.URL+"'}\n", "--sample", "--port", fmt.Sprint(port))
	browse(t, "kept.mjs", s, map[string]any{"control": killer(t, s)})
}
