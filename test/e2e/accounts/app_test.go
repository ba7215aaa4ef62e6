package accounts

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/core/store/seal"
	"github.com/ropewalk/ropewalk/internal/testkit"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// serve starts a server with a storage key and installs the app as far.
func serve(t *testing.T, a *harness.AccountApp, options ...harness.Option) *harness.Server {
	t.Helper()
	s := harness.Serve(t, append([]harness.Option{harness.Env("ROPEWALK_STORAGE_KEY=" + seal.NewKey().Reveal())}, options...)...)
	if got := s.Install(t, map[string]any{"url": a.URL, "serverName": "far"}); got.Status != "running" {
		t.Fatalf("the app is %+v", got)
	}
	return s
}

// link links an account of the dev mode user, as in a browser.
func link(t *testing.T, s *harness.Server, b *harness.Browser, name string) {
	t.Helper()
	begun := s.Object(t, "POST", "/v1/accounts", map[string]any{"app": "far", "name": name})
	agree(t, s, b, begun["url"].(string))
}

// agree links an account on the page at address and waits until the app's tools are listed.
func agree(t *testing.T, s *harness.Server, b *harness.Browser, address string) {
	t.Helper()
	b.LinkAccount(t, address)
	if !testkit.Within(harness.Timeout, func() bool { return strings.Contains(s.Do(t, "GET", "/v1/tools", nil).Body, "far__whoami") }) {
		t.Fatal("the tools of the app are not listed")
	}
}

// accountsOf returns the accounts that the caller can see.
func accountsOf(t *testing.T, s *harness.Server, headers ...string) []map[string]any {
	t.Helper()
	response := s.Do(t, "GET", "/v1/accounts", nil, headers...)
	var listed struct{ Accounts []map[string]any }
	if err := json.Unmarshal([]byte(response.Body), &listed); err != nil || response.Status != http.StatusOK {
		t.Fatalf("%d %s", response.Status, response.Body)
	}
	return listed.Accounts
}
