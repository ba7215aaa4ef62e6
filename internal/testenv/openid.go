package testenv

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// OpenIDProvider is a running oidc-provider; test/npm/oidc-provider.mjs defines its accounts.
type OpenIDProvider struct {
	Issuer string
	in     io.Writer
	out    *bufio.Scanner
	kill   func()
}

// StartOpenIDProvider starts the provider, which stops when the test ends. callback is the redirect URI of its public
// clients "app" and "ropewalk". Every login is alice's.
func StartOpenIDProvider(t testing.TB, callback string) *OpenIDProvider {
	t.Helper()
	return startOpenIDProvider(t, callback)
}

// StartOpenIDProviderWithForm is like StartOpenIDProvider, but the login page asks for the account.
func StartOpenIDProviderWithForm(t testing.TB, callback string) *OpenIDProvider {
	t.Helper()
	return startOpenIDProvider(t, callback, "form")
}

// StartAuthorizationServer is like StartOpenIDProvider, but access tokens last only the given number of seconds, and
// are renewed with single-use refresh tokens.
func StartAuthorizationServer(t testing.TB, seconds int) *OpenIDProvider {
	t.Helper()
	return startOpenIDProvider(t, "http://127.0.0.1:1/v1/auth/callback", "accounts", strconv.Itoa(seconds))
}

func startOpenIDProvider(t testing.TB, args ...string) *OpenIDProvider {
	t.Helper()
	script := filepath.Join(Root(t), "test", "npm", "oidc-provider.mjs")
	cmd := exec.CommandContext(t.Context(), "node", append([]string{script}, args...)...)
	cmd.Dir = Node(t)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "NODE_ENV=production"}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("start node: %v", err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	p := &OpenIDProvider{in: in, out: bufio.NewScanner(out), kill: func() { _ = cmd.Process.Kill() }}
	var first struct {
		Issuer string `json:"issuer"`
	}
	p.read(t, &first)
	p.Issuer = first.Issuer
	return p
}

// Rotate gives the provider a new signing key and removes the old one.
func (p *OpenIDProvider) Rotate(t testing.TB) {
	t.Helper()
	p.do(t, "rotate", &struct{}{})
}

// LogoutTokens returns the logout tokens that the provider has sent, or tried to send, in order.
func (p *OpenIDProvider) LogoutTokens(t testing.TB) []string {
	t.Helper()
	var response struct {
		Logouts []string `json:"logouts"`
	}
	p.do(t, "logouts", &response)
	return response.Logouts
}

// CloseAccount closes a person's account: its tokens are revoked, and the provider sends no logout token.
func (p *OpenIDProvider) CloseAccount(t testing.TB, account string) {
	t.Helper()
	p.do(t, "close "+account, &struct{}{})
}

// do sends the provider a line and reads the response.
func (p *OpenIDProvider) do(t testing.TB, line string, into any) {
	t.Helper()
	if _, err := fmt.Fprintln(p.in, line); err != nil {
		t.Fatal(err)
	}
	p.read(t, into)
}

// responseTime is how long the provider may take to start or to respond.
const responseTime = 5 * time.Minute

func (p *OpenIDProvider) read(t testing.TB, into any) {
	t.Helper()
	late := time.AfterFunc(responseTime, p.kill)
	defer late.Stop()
	if !p.out.Scan() {
		t.Fatalf("the provider exited early, or did not respond within %v: %v", responseTime, p.out.Err())
	}
	if err := json.Unmarshal(p.out.Bytes(), into); err != nil {
		t.Fatalf("the provider printed %q: %v", p.out.Text(), err)
	}
}

// Renewals returns how many times the provider has exchanged a refresh token, and how many grants it has revoked, such as
// after the second use of a refresh token.
func (p *OpenIDProvider) Renewals(t testing.TB) (renewals, revoked int) {
	t.Helper()
	var response struct{ Renewals, Revoked int }
	p.do(t, "renewals", &response)
	return response.Renewals, response.Revoked
}
