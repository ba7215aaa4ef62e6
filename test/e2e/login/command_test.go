package login

import (
	"context"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testkit"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// commandLine is a person's computer. Commands store their contexts in its home directory.
type commandLine struct{ home string }

func (l commandLine) environ() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + l.home, "ROPEWALK_CONTEXTS=" + filepath.Join(l.home, "contexts.yaml"), "ROPEWALK_HOME=" + filepath.Join(l.home, "none")}
}

// run runs a command and waits until it exits.
func (l commandLine) run(t *testing.T, args ...string) (output string, status int) {
	t.Helper()
	return harness.Command(t, l.environ(), args...)
}

// pendingCommand is a running ropewalk login command.
type pendingCommand struct {
	cmd *exec.Cmd
	mu  sync.Mutex
	out strings.Builder
}

func (p *pendingCommand) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.Write(text)
}

func (p *pendingCommand) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

// find waits until the command's output matches a pattern. It returns the pattern's first group.
func (p *pendingCommand) find(t *testing.T, pattern string) (found string) {
	t.Helper()
	testkit.Eventually(t, "the command prints "+pattern, func() bool {
		match := regexp.MustCompile(pattern).FindStringSubmatch(p.output())
		if match != nil {
			found = match[1]
		}
		return match != nil
	})
	return found
}

// logIn starts the command ropewalk login.
func (l commandLine) logIn(t *testing.T, browser string, args ...string) *pendingCommand {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), harness.Timeout)
	t.Cleanup(cancel)
	p := &pendingCommand{cmd: exec.CommandContext(ctx, harness.Binary(t), append([]string{"login"}, args...)...)}
	p.cmd.Env = append(l.environ(), "BROWSER="+browser)
	p.cmd.Stdout, p.cmd.Stderr = p, p
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return p
}

var consentField = regexp.MustCompile(`name="consent" value="([^"]*)"`)

// answer submits the consent form on the page.
func answer(t *testing.T, b *harness.Browser, s *harness.Server, page, allow string) (*http.Response, string) {
	t.Helper()
	consent := consentField.FindStringSubmatch(page)
	if consent == nil {
		t.Fatalf("the page does not ask for consent: %s", page)
	}
	return b.Submit(t, s.URL+"/v1/auth/device/answer", url.Values{"consent": {consent[1]}, "answer": {allow}})
}

func TestACommandLineLogsInWithTheBrowser(t *testing.T) {
	t.Parallel()
	p := harness.StartProvider(t)
	s := harness.Serve(t, harness.Config(harness.OIDCAuth(p.Issuer, "clientId: app", "admins: ["+boss+"]")))
	p.State(map[string]any{"sub": "1", "email": boss, "email_verified": true}, map[string]any{"sub": "1"}, map[string]any{"sub": "1"})
	me := commandLine{t.TempDir()}
	opened := filepath.Join(me.home, "opened")
	program := filepath.Join(me.home, "browser")
	harness.WriteFile(t, program, "#!/bin/sh\necho \"$1\" > "+opened+".new && mv "+opened+".new "+opened+"\n")
	if err := os.Chmod(program, 0o700); err != nil { //nolint:gosec // an executable file
		t.Fatal(err)
	}
	login := me.logIn(t, program, s.URL)
	testkit.Eventually(t, "a browser opens", harness.Exists(opened))
	address, err := os.ReadFile(opened)
	if err != nil {
		t.Fatal(err)
	}
	b := harness.NewBrowser(t)
	_, page := b.Read(t, strings.TrimSpace(string(address)))
	if code := login.find(t, `the code ([A-Z]{4}-[A-Z]{4})`); !strings.Contains(page, code) || !strings.Contains(page, boss) {
		t.Errorf("the page does not contain both %s and %s: %s", code, boss, page)
	}
	if b.Cookie(t, "service_session", s.URL) != "" {
		t.Error("the browser should not be logged in")
	}
	if r, page := answer(t, b, s, page, "allow"); r.StatusCode != 200 || !strings.Contains(page, "You are logged in") {
		t.Errorf("the last page: %d %s", r.StatusCode, page)
	}
	if err := login.cmd.Wait(); err != nil || !strings.Contains(login.output(), "as "+boss) {
		t.Fatalf("%v: %s", err, login.output())
	}
	if output, status := me.run(t, "whoami"); status != 0 || !strings.Contains(output, boss) || !strings.Contains(output, "admin") || !strings.Contains(output, "a login") {
		t.Errorf("whoami: %d %s", status, output)
	}
	if output, status := me.run(t, "workspace", "create", "research"); status != 0 {
		t.Errorf("a command that changes something: %d %s", status, output)
	}
	if info, err := os.Stat(filepath.Join(me.home, "contexts.yaml")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file with the login: %v %v", info.Mode(), err)
	}
	if output, status := me.run(t, "logout"); status != 0 {
		t.Errorf("logout: %d %s", status, output)
	}
	if output, status := me.run(t, "whoami"); status == 0 || !strings.Contains(output, "ropewalk login") {
		t.Errorf("after the logout: %d %s", status, output)
	}
}

func TestACommandLineWithoutABrowserLogsInWithACode(t *testing.T) {
	t.Parallel()
	p := harness.StartProvider(t)
	s := serveProvider(t, p)
	p.State(map[string]any{"sub": "1", "email": boss, "email_verified": true}, map[string]any{"sub": "1"}, map[string]any{"sub": "1"})
	me := commandLine{t.TempDir()}
	login := me.logIn(t, "", s.URL)
	code := login.find(t, `(?m)^ +([A-Z]{4}-[A-Z]{4})$`)
	b := harness.NewBrowser(t)
	r, page := b.Read(t, login.find(t, `Open (\S+)`))
	if !strings.Contains(page, `name="device"`) {
		t.Errorf("the page does not ask for the code: %s", page)
	}
	if policy := r.Header.Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "form-action") {
		t.Errorf("browsers would block the form's redirect to the provider: %s", policy)
	}
	if r, page := b.Read(t, s.URL+"/v1/auth/authorize?device=AAAA-AAAA"); r.StatusCode != 404 || !strings.Contains(page, "unknown, used or expired") {
		t.Errorf("an invalid code: %d %s", r.StatusCode, page)
	}
	typed := strings.ToLower(strings.ReplaceAll(code, "-", " "))
	_, page = b.Read(t, s.URL+"/v1/auth/authorize?"+url.Values{"device": {typed}}.Encode())
	if r, page := answer(t, b, s, page, "allow"); r.StatusCode != 200 || !strings.Contains(page, "go back to the command line") {
		t.Errorf("%d %s", r.StatusCode, page)
	}
	if r, _ := answer(t, b, s, page, "allow"); r.StatusCode != 404 {
		t.Errorf("the same consent a second time: %d", r.StatusCode)
	}
	if r, _ := b.Read(t, s.URL+"/v1/auth/authorize?device="+code); r.StatusCode != 404 {
		t.Errorf("the same code a second time: %d", r.StatusCode)
	}
	if err := login.cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, login.output())
	}
	if output, status := me.run(t, "whoami"); status != 0 || !strings.Contains(output, boss) {
		t.Errorf("whoami: %d %s", status, output)
	}
}

func TestRefusingALoginInTheBrowserEndsTheCommand(t *testing.T) {
	t.Parallel()
	p := harness.StartProvider(t)
	s := serveProvider(t, p)
	p.State(map[string]any{"sub": "1"}, map[string]any{"sub": "1"}, map[string]any{"sub": "1"})
	me := commandLine{t.TempDir()}
	login := me.logIn(t, "true", s.URL)
	b := harness.NewBrowser(t)
	_, page := b.Read(t, login.find(t, `(http://\S+authorize\?device=\S+)`))
	answer(t, b, s, page, "refuse")
	if err := login.cmd.Wait(); err == nil || !strings.Contains(login.output(), "refused in the browser") {
		t.Errorf("%v: %s", err, login.output())
	}
}

// An attacker cannot obtain another person's login with data that the attacker can see or guess.
func TestADeviceTokenIsNotALoginUntilThePersonAgrees(t *testing.T) {
	t.Parallel()
	p := harness.StartProvider(t)
	s := serveProvider(t, p)
	p.State(map[string]any{"sub": "1"}, map[string]any{"sub": "1"}, map[string]any{"sub": "1"})
	ask := func(redirect string) map[string]any {
		a := s.Do(t, "POST", "/v1/auth/device", map[string]any{"name": "laptop", "redirectUri": redirect})
		if a.Status != 200 {
			t.Fatalf("%s: %d %s", redirect, a.Status, a.Body)
		}
		return a.Object(t)
	}
	session := func(token string) int {
		return s.Do(t, "GET", "/v1/auth/session", nil, "Cookie: service_session="+token).Status
	}
	for _, redirect := range []string{"http://127.0.0.1:1/done", ""} {
		device := ask(redirect)
		token, _ := device["token"].(string)
		if status := session(token); status != 401 {
			t.Errorf("before the page was opened: %d", status)
		}
		b := harness.NewBrowser(t)
		b.Stop = "http://127.0.0.1:1/"
		_, page := b.Read(t, device["loginUrl"].(string))
		if status := session(token); status != 401 {
			t.Errorf("before the person agreed: %d", status)
		}
		answer(t, b, s, page, "allow")
		code := ""
		if redirect != "" {
			if status := session(token); status != 401 {
				t.Errorf("without the code from the browser: %d", status)
			}
			code = b.At.Query().Get("code")
		}
		if status := session(token + code); status != 200 {
			t.Errorf("with the code from the browser: %d", status)
		}
		if a := s.Do(t, "POST", "/mcp", map[string]any{}, "Authorization: Bearer "+token+code); a.Status != 401 {
			t.Errorf("at /mcp: %d", a.Status)
		}
	}
	for _, redirect := range []string{"https://127.0.0.1:1/", "http://localhost:1/", "http://10.0.0.1:1/", "http://127.0.0.1/", "http://u@127.0.0.1:1/", "http://127.0.0.1:1/?a=b", "http://127.0.0.1:1/#a", "javascript:alert(1)"} {
		if a := s.Do(t, "POST", "/v1/auth/device", map[string]any{"name": "laptop", "redirectUri": redirect}); a.Status != 400 {
			t.Errorf("%s: %d %s", redirect, a.Status, a.Body)
		}
	}
}

func TestAServerWithoutAnIdentityProviderAsksForAKey(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t, harness.Env("SERVICE_API_KEY=the-key-of-this-server-0123456789"))
	me := commandLine{t.TempDir()}
	if output, status := me.run(t, "login", s.URL); status == 0 || !strings.Contains(output, "ropewalk key create") {
		t.Errorf("without a key: %d %s", status, output)
	}
	made, status := harness.Command(t, []string{"ROPEWALK_HOME=" + s.Home}, "key", "create", "laptop", "--json")
	if status != 0 {
		t.Fatalf("creating a key on the server's machine without a key: %d %s", status, made)
	}
	key := regexp.MustCompile(`rwk_[A-Za-z0-9_-]+`).FindString(made)
	cmd := exec.CommandContext(t.Context(), harness.Binary(t), "login", "--key", s.URL)
	cmd.Env, cmd.Stdin = me.environ(), strings.NewReader(key+"\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("with a key: %v %s", err, out)
	}
	if output, status := me.run(t, "app", "list"); status != 0 {
		t.Errorf("a command: %d %s", status, output)
	}
}

func TestClientConfigUsesThePublicAddressAndTheLogin(t *testing.T) {
	t.Parallel()
	p := harness.StartProvider(t)
	s := harness.Serve(t, harness.Config("http: {baseUrl: https://tools.example.com}\n"+harness.OIDCAuth(p.Issuer, "clientId: app")))
	output, status := harness.Command(t, []string{"ROPEWALK_HOME=" + s.Home}, "client-config", "claude-code")
	if status != 0 || !strings.Contains(output, " https://tools.example.com/mcp/me") || strings.Contains(output, "API_KEY") {
		t.Errorf("%d %s", status, output)
	}
}
