package clients

import (
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testenv"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// models starts a model provider whose model answers "hello" with a sentence. It returns the models setting for this
// provider.
func models(t *testing.T) string {
	t.Helper()
	p := testenv.StartModelProvider(t)
	p.Say(t,
		`{"match":{"systemMessage":"Write a title"},"response":{"content":"A greeting"}}`,
		`{"match":{"userMessage":"hello"},"response":{"content":"Good morning."}}`,
	)
	return "{default: 'anthropic:test-model', providers: {anthropic: {baseUrl: '" + p.URL + "', apiKey: k}}}"
}

// facts returns the argument of a generated client: the server's address and a bundle to install.
func facts(t *testing.T, s *harness.Server) string {
	t.Helper()
	raw, err := json.Marshal(map[string]string{"url": s.URL, "bundle": everything(t)})
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// checkOutput checks what a generated client printed.
func checkOutput(t *testing.T, out string) {
	t.Helper()
	var got clientOutput
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if got.Installed != "everything" || !slices.Contains(got.Listed, "everything") || !slices.Equal(got.Env, []string{"LEVEL"}) {
		t.Errorf("installed %q with %v, listed %v", got.Installed, got.Env, got.Listed)
	}
	if got.Sum != "The sum of 46 and 2 is 48." || got.Echoed != "Echo: text" || got.Refused != "invalid_input" {
		t.Errorf("the tools returned %q and %q; for invalid arguments: %q", got.Sum, got.Echoed, got.Refused)
	}
	if got.Response != "Good morning." || got.Metadata != 7 || !got.Forked || got.Conversations != 2 {
		t.Errorf("the chat returned %q with metadata %v; forked %v; %d conversations", got.Response, got.Metadata, got.Forked, got.Conversations)
	}
	if got.Restored == "" || got.Planned != "planned" || got.OpenAPI != "3.1.0" {
		t.Errorf("restored %q, planned %q, document %q", got.Restored, got.Planned, got.OpenAPI)
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	write(t, to, string(content))
}
