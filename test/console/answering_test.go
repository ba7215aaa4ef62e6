package console

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// While an answer arrives, Esc stops it, a pending call can be approved in its card, and other windows show these
// changes.
func TestAnAnswerIsStoppedAndItsCallsAreApprovedInPlace(t *testing.T) {
	t.Parallel()
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		body := string(raw)
		w.Header().Set("Content-Type", "text/event-stream")
		end := func(reason string) {
			_, _ = fmt.Fprintf(w, `data: {"id":"1","choices":[{"index":0,"delta":{},"finish_reason":%q}]}`+"\n\ndata: [DONE]\n\n", reason)
		}
		say := func(text string) {
			_, _ = fmt.Fprintf(w, `data: {"id":"1","choices":[{"index":0,"delta":{"content":%q}}]}`+"\n\n", text)
		}
		switch {
		case strings.Contains(body, "Write a title"):
			say("A title")
			end("stop")
		case strings.Contains(body, "please fail"):
			http.Error(w, `{"error":{"message":"no more credit"}}`, http.StatusForbidden)
		case strings.Contains(body, `"tool"`) && strings.Contains(body, "call_1"):
			say("It was echoed.")
			end("stop")
		case strings.Contains(body, "echo it"):
			_, _ = io.WriteString(w, `data: {"id":"1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"sample__echo","arguments":"{\"text\":\"hi\"}"}}]}}]}`+"\n\n")
			end("tool_calls")
		default:
			say("Working on it. ")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}
	}))
	t.Cleanup(provider.Close)
	s := serve(t, "tools: {approve: [sample__echo]}\nmodels:\n  default: local:test\n  providers:\n    local: {type: openai, apiKey: k, baseUrl: '"+provider.URL+"'}\n", "--sample")
	browse(t, "answering.mjs", s, nil)
}
