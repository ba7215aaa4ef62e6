package testenv

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// ModelProvider is a running @copilotkit/aimock: a model provider over real HTTP, with Anthropic's API at URL
// and OpenAI's at URL + /v1. It returns the responses that a test has scripted.
type ModelProvider struct {
	URL string
}

// StartModelProvider starts the provider, which stops when the test ends.
func StartModelProvider(t testing.TB) *ModelProvider {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "node", filepath.Join(Root(t), "test", "npm", "aimock.mjs"))
	cmd.Dir = Node(t)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatalf("start node: %v", err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	var first struct {
		URL string `json:"url"`
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatalf("the model provider exited early: %v", lines.Err())
	}
	if err := json.Unmarshal(lines.Bytes(), &first); err != nil {
		t.Fatalf("the model provider printed %q: %v", lines.Text(), err)
	}
	return &ModelProvider{URL: first.URL}
}

// SharedModelProvider is the single provider of a package whose tests run sequentially: starting node for each
// would account for most of their run time. The provider starts for the first test that needs it and stops after the last test, if
// TestMain runs the tests through Around. The zero value is ready to use.
type SharedModelProvider struct {
	once     sync.Once
	provider *ModelProvider
	ends     []func()
}

// Provider returns the provider with no fixtures and an empty journal.
func (s *SharedModelProvider) Provider(t testing.TB) *ModelProvider {
	t.Helper()
	skipIfShort(t, "npm packages")
	s.once.Do(func() { s.provider = StartModelProvider(&packageTest{t, &s.ends}) })
	if s.provider == nil {
		t.Fatal("the model provider did not start for an earlier test")
	}
	s.provider.Forget(t)
	return s.provider
}

// Around wraps a package's tests: the provider stops when they have run, before leaks are checked.
func (s *SharedModelProvider) Around(m interface{ Run() int }) interface{ Run() int } {
	return &around{m, &s.ends}
}

// Say adds fixtures in aimock's format, which map requests to responses. The first match wins.
func (p *ModelProvider) Say(t testing.TB, fixtures ...string) {
	t.Helper()
	body := []byte(`{"fixtures":[`)
	for i, f := range fixtures {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, f...)
	}
	p.do(t, http.MethodPost, "/__aimock/fixtures", append(body, "]}"...))
}

// Forget removes all fixtures and clears the journal.
func (p *ModelProvider) Forget(t testing.TB) {
	t.Helper()
	p.do(t, http.MethodPost, "/__aimock/reset", nil)
}

// ModelRequest is one request that the provider received. Body is in OpenAI's format, whichever API was used.
type ModelRequest struct {
	Path string         `json:"path"`
	Body map[string]any `json:"body"`
	At   int64          `json:"timestamp"` // milliseconds

	Response struct {
		Left int64 `json:"left"` // when the client disconnected before it had the whole response, in milliseconds; otherwise 0
	} `json:"response"`
}

// Journal returns every request so far.
func (p *ModelProvider) Journal(t testing.TB) (all []ModelRequest) {
	t.Helper()
	if err := json.Unmarshal(p.do(t, http.MethodGet, "/__aimock/journal", nil), &all); err != nil {
		t.Fatal(err)
	}
	return all
}

func (p *ModelProvider) do(t testing.TB, method, path string, body []byte) []byte {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, p.URL+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Close = true
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %d %s %v", method, path, response.StatusCode, content, err)
	}
	return content
}
