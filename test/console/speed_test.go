package console

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// manyDeltas is how many pieces the long answer comes in.
const manyDeltas = 10_000

// streamingModel answers every message with the pieces, one event each, on OpenAI's wire. It returns the
// configuration of a server that chats with it.
func streamingModel(t *testing.T, pieces []string) string {
	t.Helper()
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		said := pieces
		if body, _ := io.ReadAll(r.Body); strings.Contains(string(body), "Write a title") {
			said = []string{"A title"}
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for _, piece := range said {
			quoted, _ := json.Marshal(piece)
			_, _ = fmt.Fprintf(w, "data: {\"id\":\"1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":%s}}]}\n\n", quoted)
			_ = http.NewResponseController(w).Flush()
		}
		_, _ = io.WriteString(w, "data: {\"id\":\"1\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":4,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(provider.Close)
	return "models:\n  default: local:test\n  providers:\n    local: {type: openai, apiKey: k, baseUrl: '" + provider.URL + "'}\n"
}

// longAnswer is Markdown in pieces of about a token: paragraphs, then one list, one block of code and one
// table that are each as long as all paragraphs.
func longAnswer() []string {
	var pieces []string
	add := func(upTo int, first string, next func(i int) string) {
		pieces = append(pieces, first)
		for i := 0; len(pieces) < upTo; i++ {
			pieces = append(pieces, next(i))
		}
	}
	part := manyDeltas / 4
	every := func(n int, then string, otherwise string) func(int) string {
		return func(i int) string {
			if i%n == n-1 {
				return then
			}
			return otherwise
		}
	}
	add(part, "The first paragraph", every(60, ".\n\nA paragraph with `code` and **weight**", " word"))
	add(2*part, "\n\n1. the first item", every(12, "\n1. an item with *emphasis*", " word"))
	add(3*part, "\n\n```python\ntotal = 0", every(10, "\nvalue = \"text\" # comment", " + 12"))
	add(manyDeltas-1, "\n```\n\n| A | B |\n|---|---|\n| first", every(8, " |\n| cell", " word"))
	return append(pieces, " |\n\nThe very end.")
}

// The bytes of a first visit are counted in the browser. With ROPEWALK_CONSOLE_TIMES=1 the time until the
// chat can be used on a processor that is four times slower has its limit too. With
// ROPEWALK_CONSOLE_AGAINST=path the console of that executable is measured in turn with this one.
func TestTheFirstLoadIsSmallAndSoonUsable(t *testing.T) {
	t.Parallel()
	config := streamingModel(t, []string{"Yes."})
	facts := map[string]any{"strict": os.Getenv("ROPEWALK_CONSOLE_TIMES") != ""}
	if other := os.Getenv("ROPEWALK_CONSOLE_AGAINST"); other != "" {
		older := func(s *harness.Server) { s.Program = other }
		facts["against"] = localURL(harness.Serve(t, older, harness.Config(config), harness.Flags("--sample")))
	}
	browse(t, "load.mjs", serve(t, config, "--sample"), facts)
}

// What was rendered of an answer stays as it is while the rest arrives: the work of a delta does not grow
// with the answer. With ROPEWALK_CONSOLE_TIMES=1 no task of the page may take more than 100 ms.
func TestTenThousandDeltasRenderOnlyWhatGrows(t *testing.T) {
	t.Parallel()
	pieces := longAnswer()
	if len(pieces) != manyDeltas || !strings.HasPrefix(pieces[0], "The first") {
		t.Fatalf("the answer has %d pieces", len(pieces))
	}
	s := serve(t, streamingModel(t, pieces))
	browse(t, "deltas.mjs", s, map[string]any{"strict": os.Getenv("ROPEWALK_CONSOLE_TIMES") != ""})
}
