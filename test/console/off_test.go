package console

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// With http.console: false, every console path returns 404. The API still works.
func TestADisabledConsoleServesNothing(t *testing.T) {
	t.Parallel()
	on, off := serve(t, ""), serve(t, "http: {console: false}\n")
	page := on.Do(t, "GET", "/", nil).Body
	assets := regexp.MustCompile(`/assets/[^"]+`).FindAllString(page, -1)
	if len(assets) < 2 {
		t.Fatalf("the page has only the assets %q", assets)
	}
	paths := append(assets, "/chat", "/chat/conv_0123456789abcdef", "/apps", "/apps/sample", "/tools", "/approvals", "/activity", "/usage",
		"/people", "/system", "/connect", "/favicon.svg", "/console/facts.json", "/console/view")
	for _, path := range paths {
		if a := on.Do(t, "GET", path, nil); a.Status != http.StatusOK {
			t.Errorf("the console is on: %s returns %d %s", path, a.Status, a.Body)
		}
		if a := off.Do(t, "GET", path, nil); a.Status != http.StatusNotFound || strings.Contains(a.Body, "<") {
			t.Errorf("the console is off: %s returns %d %.200s", path, a.Status, a.Body)
		}
	}
	if a := off.Do(t, "GET", "/", nil); strings.Contains(a.Body, "/assets/") || strings.Contains(a.Body, `id="root"`) {
		t.Errorf("the console is off: / returns %d %.200s", a.Status, a.Body)
	}
	if a := off.Do(t, "GET", "/v1/health", nil); a.Status != http.StatusOK {
		t.Errorf("the console is off: /v1/health returns %d", a.Status)
	}
}
