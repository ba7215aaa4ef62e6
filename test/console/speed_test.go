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

// manyDeltas is the number of pieces in the long answer.
const manyDeltas = 10_000

// streamingModel starts a model provider that answers every message with the pieces, one event each, in OpenAI's
// format. It returns a server configuration that uses the provider for chats.
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

// shortAnswer returns an answer of 200 KB in 1,000 pieces.
func shortAnswer() []string {
	pieces := make([]string, 999, 1000)
	for i := range pieces {
		pieces[i] = strings.Repeat("some words of an answer ", 8) + "and `code`. "
		if i%8 == 7 {
			pieces[i] += "\n\n"
		}
	}
	return append(pieces, "\n\nThe very end.")
}

// With ROPEWALK_CONSOLE_TIMES=1, the longest task on a processor slowed down by a factor of four may take at most 50
// ms. This is the median of five answers.
func TestAThousandDeltasOfALargeAnswerRenderInShortTasks(t *testing.T) {
	t.Parallel()
	pieces := shortAnswer()
	if size := len(strings.Join(pieces, "")); len(pieces) != 1000 || size < 200_000 {
		t.Fatalf("the answer has %d pieces and %d bytes", len(pieces), size)
	}
	browse(t, "slow.mjs", serve(t, streamingModel(t, pieces)), map[string]any{"strict": os.Getenv("ROPEWALK_CONSOLE_TIMES") != ""})
}

// longAnswer returns Markdown in pieces of about one token. Paragraphs come first, then a list, a code block and a
// table, each as long as all paragraphs together.
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

// The browser counts the bytes of a first visit (docs/console-development.md). With ROPEWALK_CONSOLE_TIMES=1, the test
// also limits the time until the chat is usable on a processor slowed down by a factor of four. With
// ROPEWALK_CONSOLE_AGAINST=path, it measures this console and the console of the executable at path in turn.
func TestTheFirstLoadIsSmallAndQuicklyUsable(t *testing.T) {
	t.Parallel()
	config := streamingModel(t, []string{"Yes."})
	facts := map[string]any{"strict": os.Getenv("ROPEWALK_CONSOLE_TIMES") != ""}
	if other := os.Getenv("ROPEWALK_CONSOLE_AGAINST"); other != "" {
		older := func(s *harness.Server) { s.Program = other }
		facts["against"] = localURL(harness.Serve(t, older, harness.Config(config), harness.Flags("--sample")))
	}
	browse(t, "load.mjs", serve(t, config, "--sample"), facts)
}

// The rendered part of an answer does not change while the rest arrives, so that the work per delta does not
// grow with the answer. With ROPEWALK_CONSOLE_TIMES=1, no task on the page may take more than 100 ms.
func TestTenThousandDeltasRenderOnlyTheGrowingPart(t *testing.T) {
	t.Parallel()
	pieces := longAnswer()
	if len(pieces) != manyDeltas || !strings.HasPrefix(pieces[0], "The first") {
		t.Fatalf("the answer has %d pieces", len(pieces))
	}
	s := serve(t, streamingModel(t, pieces))
	browse(t, "deltas.mjs", s, map[string]any{"strict": os.Getenv("ROPEWALK_CONSOLE_TIMES") != ""})
}
