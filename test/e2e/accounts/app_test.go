package accounts

import (
	"encoding/json"
	"html"
	"net/http"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core/store/seal"
	"github.com/ropewalk/ropewalk/internal/testkit"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// serve starts a server with a storage key, and installs the app under the name far.
func serve(t *testing.T, a *harness.AccountApp, options ...harness.Option) *harness.Server {
	t.Helper()
	s := harness.Serve(t, append([]harness.Option{harness.Env("ROPEWALK_STORAGE_KEY=" + seal.NewKey().Reveal())}, options...)...)
	if got := s.Install(t, map[string]any{"url": a.URL, "serverName": "far"}); got.Status != "running" {
		t.Fatalf("the app is %+v", got)
	}
	return s
}

// link links an account of the dev mode user, in a browser.
func link(t *testing.T, s *harness.Server, b *harness.Browser, name string) {
	t.Helper()
	begun := s.Object(t, "POST", "/v1/accounts", map[string]any{"app": "far", "name": name})
	agree(t, s, b, begun["url"].(string))
}

// agree opens the page for linking an account, agrees, and logs in.
func agree(t *testing.T, s *harness.Server, b *harness.Browser, address string) {
	t.Helper()
	page, text := b.Read(t, address)
	if page.StatusCode != 200 || !strings.Contains(text, "Continue to log in") {
		t.Fatalf("the page: %d %s", page.StatusCode, text)
	}
	if page, text := b.Submit(t, s.URL+formAction(text), nil); page.StatusCode != 200 || !strings.Contains(text, "The account is linked") {
		t.Fatalf("at the end, at %s: %d %s", b.At, page.StatusCode, text)
	}
	if !testkit.Within(harness.Timeout, func() bool { return strings.Contains(s.Do(t, "GET", "/v1/tools", nil).Body, "far__whoami") }) {
		t.Fatal("the tools of the app are not listed")
	}
}

// formAction returns the path and query to which the form of a page is sent.
func formAction(page string) string {
	_, rest, _ := strings.Cut(page, ` method="post" action="`)
	action, _, _ := strings.Cut(rest, `"`)
	return html.UnescapeString(action)
}

// accountsOf returns the accounts that a caller can see.
func accountsOf(t *testing.T, s *harness.Server, headers ...string) []map[string]any {
	t.Helper()
	answer := s.Do(t, "GET", "/v1/accounts", nil, headers...)
	var listed struct{ Accounts []map[string]any }
	if err := json.Unmarshal([]byte(answer.Body), &listed); err != nil || answer.Status != http.StatusOK {
		t.Fatalf("%d %s", answer.Status, answer.Body)
	}
	return listed.Accounts
}
