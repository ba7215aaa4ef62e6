package console

import (
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// answer is what a server answers to a GET.
func (s *server) answer(t *testing.T, path string) (status int, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(raw)
}

// With http.console: false each path that the console has is an unknown one, and the API is there.
func TestNothingOfTheConsoleAnswersWhenItIsOff(t *testing.T) {
	t.Parallel()
	on, off := serve(t, ""), serve(t, "http: {console: false}\n")
	_, page := on.answer(t, "/")
	assets := regexp.MustCompile(`/assets/[^"]+`).FindAllString(page, -1)
	if len(assets) < 2 {
		t.Fatalf("the page names the assets %q", assets)
	}
	paths := append(assets, "/chat", "/chat/conv_0123456789abcdef", "/apps", "/apps/sample", "/tools", "/approvals", "/activity", "/usage",
		"/people", "/system", "/connect", "/favicon.svg", "/console/facts.json", "/console/view")
	for _, path := range paths {
		if status, body := on.answer(t, path); status != http.StatusOK {
			t.Errorf("the console is on: %s answers %d %s", path, status, body)
		}
		if status, body := off.answer(t, path); status != http.StatusNotFound || strings.Contains(body, "<") {
			t.Errorf("the console is off: %s answers %d %.200s", path, status, body)
		}
	}
	if status, body := off.answer(t, "/"); strings.Contains(body, "/assets/") || strings.Contains(body, `id="root"`) {
		t.Errorf("the console is off: / answers %d %.200s", status, body)
	}
	if status, _ := off.answer(t, "/v1/health"); status != http.StatusOK {
		t.Errorf("the console is off: /v1/health answers %d", status)
	}
}
