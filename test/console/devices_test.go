package console

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// On a touch screen and on a page of medium width, everything in a chat can be reached and closed again. The login page
// offers only what the server supports, failures are shown once, and calls from the list of tools can be approved
// there.
func TestTheConsoleFitsTouchScreensAndMediumPages(t *testing.T) {
	t.Parallel()
	const token = "a-test-token-0123456789"
	provider := httptest.NewServer(http.HandlerFunc(answerDevices))
	t.Cleanup(provider.Close)
	tokens := filepath.Join(t.TempDir(), "tokens.yaml")
	content := fmt.Sprintf("tokens:\n  - {token: %s, subject: ada, email: ada@example.com, name: Ada, orgRole: admin, expires: %s}\n", token, time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	if err := os.WriteFile(tokens, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	s := serve(t, fmt.Sprintf(`auth:
  adapter: static
  file: %s
  admins: ["email:ada@example.com"]
  join: {workspace: default, role: admin}
tools: {approve: [sample__echo]}
models:
  default: local:test
  providers:
    local: {type: openai, apiKey: k, baseUrl: '%s'}
`, tokens, provider.URL), "--sample")
	browse(t, "devices.mjs", s, map[string]any{"token": token})
}

// answerDevices acts as the model for devices.mjs.
func answerDevices(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("Content-Type", "text/event-stream")
	say := func(text string) {
		_, _ = fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%s}}]}\n\n", quoted(text))
	}
	switch {
	case strings.Contains(string(body), "Write a title"):
		say("A title")
	case strings.Contains(string(body), "break off"):
		say("It begins and")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler) // ends the connection
	case strings.Contains(string(body), "some code"):
		say("```\nx = 1\n```\n")
	default:
		say("Seen.")
	}
	_, _ = io.WriteString(w, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
}

// Without a model, a new chat suggests actions that need no model.
func TestAFirstVisitWithoutAModelLeadsToTheTools(t *testing.T) {
	t.Parallel()
	browse(t, "nomodel.mjs", serve(t, "", "--sample"), nil)
}
