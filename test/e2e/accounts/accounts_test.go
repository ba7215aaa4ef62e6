// Package accounts tests remote apps that each person uses with their own account.
package accounts

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testkit"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

func TestAPersonLinksAnAccountAndCallsTheAppAsThemselves(t *testing.T) {
	t.Parallel()
	a := harness.StartAccountApp(t, 4)
	s := serve(t, a)
	call := map[string]any{"server": "far", "tool": "whoami", "arguments": map[string]any{}}
	if refused := s.Do(t, "POST", "/v1/tools/call", call); refused.Status != http.StatusNotFound {
		t.Errorf("before anyone has linked an account: %d %s", refused.Status, refused.Body)
	}
	b := harness.NewBrowser(t)
	link(t, s, b, "")
	if got := s.Object(t, "POST", "/v1/tools/call", call); got["result"] != "alice" {
		t.Errorf("the app sees %v", got)
	}

	// The server renews tokens without asking the person. Each refresh token can be used only once.
	if !testkit.Within(harness.Timeout, func() bool {
		if got := s.Do(t, "POST", "/v1/tools/call", call); got.Status != 200 {
			t.Fatalf("%d %s", got.Status, got.Body)
		}
		return len(a.Tokens()) >= 3
	}) {
		t.Errorf("the app saw %d tokens", len(a.Tokens()))
	}

	// After a restart, the app still has its tools, and the account still has its tokens.
	s.Stop()
	s.Start()
	s.WaitForStatus(t, "far", "running")
	if got := s.Object(t, "POST", "/v1/tools/call", call); got["result"] != "alice" {
		t.Errorf("after a restart the app sees %v", got)
	}

	list := accountsOf(t, s)
	if len(list) != 1 || list[0]["name"] != "main" || list[0]["state"] != "active" || list[0]["issuer"] != a.Provider.Issuer {
		t.Fatalf("the accounts: %v", list)
	}
	if deleted := s.Do(t, "DELETE", "/v1/accounts/"+list[0]["id"].(string), nil); deleted.Status != 200 {
		t.Fatalf("%d %s", deleted.Status, deleted.Body)
	}
	refused := s.Do(t, "POST", "/v1/tools/call", call)
	if details, _ := refused.Object(t)["details"].(map[string]any); refused.Status != http.StatusConflict || details["app"] != "far" || details["url"] == nil {
		t.Errorf("without an account: %d %s", refused.Status, refused.Body)
	}
	for _, bearer := range a.Tokens() {
		if strings.Contains(s.Log.String(), bearer) {
			t.Error("the log contains a token")
		}
	}
}

// The provider and the app require proofs with nonces, and tokens are renewed with the same key.
func TestAnAppThatRequiresBoundTokensGetsThem(t *testing.T) {
	t.Parallel()
	a := harness.StartAccountApp(t, 4)
	a.Bound.Store(true)
	s := serve(t, a)
	link(t, s, harness.NewBrowser(t), "")
	call := map[string]any{"server": "far", "tool": "whoami", "arguments": map[string]any{}}
	if !testkit.Within(harness.Timeout, func() bool {
		if got := s.Object(t, "POST", "/v1/tools/call", call); got["result"] != "alice" {
			t.Fatalf("the app sees %v", got)
		}
		return len(a.Tokens()) >= 3
	}) {
		t.Errorf("the app saw %d tokens", len(a.Tokens()))
	}
}

func TestACallUsesTheAccountThatItNames(t *testing.T) {
	t.Parallel()
	a := harness.StartAccountApp(t, 600)
	s := serve(t, a)
	link(t, s, harness.NewBrowser(t), "work")
	link(t, s, harness.NewBrowser(t), "home")
	for _, c := range []struct {
		name   string
		call   map[string]any
		status int
	}{
		{"a read with the default account", map[string]any{"tool": "far__whoami"}, 200},
		{"a read with a named account", map[string]any{"tool": "far_home__whoami"}, 200},
		{"a change with a named account", map[string]any{"tool": "far_work__change"}, 200},
		{"a change with the account in the request", map[string]any{"tool": "far__change", "account": "home"}, 200},
		{"a change without an account", map[string]any{"tool": "far__change"}, 400},
		{"two names", map[string]any{"tool": "far_work__change", "account": "home"}, 400},
		{"an account that is not linked", map[string]any{"tool": "far_other__whoami"}, 409},
	} {
		if got := s.Do(t, "POST", "/v1/tools/call", c.call); got.Status != c.status {
			t.Errorf("%s: %d %s, want %d", c.name, got.Status, got.Body, c.status)
		}
	}
	if n := a.Seen("change alice"); n != 2 {
		t.Errorf("the app was called %d times", n)
	}
	if got := len(a.Tokens()); got != 2 {
		t.Errorf("the app got %d tokens for two accounts", got)
	}
}

func TestTheFirstAccountCreatesTheEncryptionKey(t *testing.T) {
	t.Parallel()
	a := harness.StartAccountApp(t, 600)
	s := harness.Serve(t, harness.Config("apps: {far: {url: \""+a.URL+"\", transport: {auth: {type: user}}}}\n"))
	if s.Database != "" {
		t.Skip("servers that may share a database need a configured key")
	}
	s.WaitForStatus(t, "far", "running")
	link(t, s, harness.NewBrowser(t), "")
	if info, err := os.Stat(s.Home + ".state-key"); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key file: %v %v", info, err)
	}
	s.Stop()
	s.Start()
	s.WaitForStatus(t, "far", "running")
	if got := s.Object(t, "POST", "/v1/tools/call", map[string]any{"server": "far", "tool": "whoami"}); got["result"] != "alice" {
		t.Errorf("after a restart the app sees %v", got)
	}
}
