package console

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testenv"
)

// Files, drafts and messages survive failures of the browser and the server. Several files are sent at once, and again
// in a fork. A draft survives a reload. A message that did not reach the server can be retried. A tool's picture stays
// in the conversation.
func TestNothingThatAUserWroteOrSentIsLost(t *testing.T) {
	t.Parallel()
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var asked struct{ Model string }
		_ = json.Unmarshal(body, &asked)
		has := func(text string) bool { return strings.Contains(string(body), text) }
		delta, reason := fmt.Sprintf(`"content":"Seen by %s."`, asked.Model), "stop"
		switch {
		case !has("draw something") || has("Write a title"):
		case has("data:image/png"):
			delta = `"content":"I see a picture."`
		default:
			delta = `"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"everything__get-tiny-image","arguments":"{}"}}]`
			reason = "tool_calls"
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprintf(w, `data: {"id":"1","choices":[{"index":0,"delta":{%s},"finish_reason":%q}]}`+"\n\ndata: [DONE]\n\n", delta, reason)
	}))
	t.Cleanup(provider.Close)
	port := testenv.FreePort(t)
	s := serve(t, "models:\n  default: local:test\n  providers:\n    local: {type: openai, apiKey: k, baseUrl: '"+provider.URL+"'}\n", "--sample", "--port", fmt.Sprint(port))
	s.Object(t, "POST", "/v1/apps/install", map[string]any{"path": bundle(t, "@modelcontextprotocol/server-everything", nil)})
	browse(t, "kept.mjs", s, map[string]any{"control": killer(t, s)})
}
