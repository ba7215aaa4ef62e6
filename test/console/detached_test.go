package console

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// An answer continues when its page is reloaded, and the person's other pages show it too.
func TestAnAnswerContinuesWithoutItsPage(t *testing.T) {
	t.Parallel()
	more := make(chan struct{})
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		parts := []string{"The first part. ", "The second part. ", "The end."}
		if strings.Contains(string(body), "Write a title") {
			parts = []string{"A title"}
		}
		for i, part := range parts {
			if i > 0 {
				select {
				case <-more:
				case <-r.Context().Done():
					return
				}
			}
			_, _ = fmt.Fprintf(w, `data: {"id":"1","choices":[{"index":0,"delta":{"content":%q}}]}`+"\n\n", part)
			_ = http.NewResponseController(w).Flush()
		}
		_, _ = io.WriteString(w, "data: {\"id\":\"1\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(provider.Close)
	control := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case more <- struct{}{}:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(control.Close)
	s := serve(t, "models:\n  default: local:test\n  providers:\n    local: {type: openai, apiKey: k, baseUrl: '"+provider.URL+"'}\n", "--sample")
	browse(t, "detached.mjs", s, map[string]any{"control": control.URL})
}
