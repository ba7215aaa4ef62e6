package mcp

import (
	"context"
	"encoding/json"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testenv"
	"github.com/ropewalk/ropewalk/internal/testkit"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

// visit is the data that the page received from /mcp with one revision.
type visit struct {
	Revision, Elicited               string
	Tools, Order, Questions, Reports []string
	Closed                           bool
}

// pageOutcome is everything that the page received, or the reason why it failed. Others are the methods of unexpected
// messages.
type pageOutcome struct {
	Visits  []visit
	Others  []string
	Failure string
}

// servePage serves page.html for one visitor, at an origin of its own.
func servePage(t *testing.T) (origin string) {
	t.Helper()
	done := make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, "page.html") })
	mux.HandleFunc("POST /done", func(http.ResponseWriter, *http.Request) { close(done) })
	mux.HandleFunc("GET /until-done", func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-done:
		case <-r.Context().Done():
		}
	})
	at := httptest.NewServer(mux)
	t.Cleanup(func() {
		at.CloseClientConnections()
		at.Close()
	})
	return at.URL
}

// openPage opens the page in Chromium and returns the page's outcome. If the test fails, openPage logs Chromium's
// output.
func openPage(t *testing.T, s *harness.Server, origin, token string) pageOutcome {
	t.Helper()
	query := url.Values{"server": {s.URL}, "token": {token}, "workspace": {harness.Workspace}}
	home := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 2*harness.Timeout)
	defer cancel()
	// Chromium's sandbox requires more rights than a container has. The page is trusted, so it runs without the
	// sandbox.
	cmd := exec.CommandContext(ctx, testenv.Program(t, "chromium"), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--disable-background-networking", "--disable-component-update", "--disable-crash-reporter", "--no-first-run", "--enable-logging=stderr",
		"--user-data-dir="+filepath.Join(home, "profile"), "--dump-dom", origin+"/?"+query.Encode())
	output := &testkit.Log{}
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + home, "LANG=C.UTF-8"}
	cmd.Stderr = output
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = harness.Timeout
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("Chromium's output for %s (%v):\n%s", origin, cmd.ProcessState, withoutDBusLines(output.String()))
		}
	})
	dom, err := cmd.Output()
	killAll(t, home) // Chromium's helper processes may run a little longer and write files
	if err != nil {
		t.Fatalf("chromium: %v (%v)", err, ctx.Err())
	}
	_, after, _ := strings.Cut(string(dom), `<pre id="outcome">`)
	written, _, _ := strings.Cut(after, "</pre>")
	var outcome pageOutcome
	if err := json.Unmarshal([]byte(html.UnescapeString(written)), &outcome); err != nil {
		t.Fatalf("the page shows %q: %s", written, dom)
	}
	return outcome
}

// withoutDBusLines removes Chromium's messages about D-Bus, which does not exist in a container.
func withoutDBusLines(output string) string {
	lines := strings.Split(output, "\n")
	return strings.Join(slices.DeleteFunc(lines, func(line string) bool { return strings.Contains(line, "dbus") }), "\n")
}

// killAll kills every process that belongs to a home and waits until all have exited.
func killAll(t *testing.T, home string) {
	t.Helper()
	if !testkit.Within(harness.Timeout, func() bool {
		running := harness.ProcessesFor(home)
		for _, p := range running {
			_ = syscall.Kill(p.ID, syscall.SIGKILL)
		}
		return len(running) == 0
	}) {
		t.Errorf("these processes of the browser are still running:\n%v", harness.ProcessesFor(home))
	}
}

func TestAPageFromAnAllowedOriginCanUseMCP(t *testing.T) {
	t.Parallel()
	const token = "the-token-of-alice-1"
	tokens := filepath.Join(t.TempDir(), "tokens.yaml")
	harness.WriteFile(t, tokens, "tokens:\n- {token: "+token+", subject: alice, orgRole: owner, expires: 2099-01-01T00:00:00Z}\n")
	allowed, other := servePage(t), servePage(t)
	s := harness.Serve(t, harness.Config("auth: {adapter: static, audience: any, file: "+tokens+"}\nhttp: {allowedOrigins: [\""+allowed+"\"]}\n"))
	for _, bundle := range []string{harness.NodeBundle(t, harness.NodeManifest("everything", harness.Everything, "stdio")), harness.GoBundle(t, "stateless", harness.Stateless)} {
		if a := s.Do(t, "POST", "/v1/apps/install", map[string]any{"path": bundle}, "Authorization: Bearer "+token); a.Status != http.StatusOK {
			t.Fatalf("install: %d %s", a.Status, a.Body)
		}
	}
	harness.WriteFile(t, filepath.Join(s.Home, "apps", "stateless", "data", harness.GateFile), "")

	seen := openPage(t, s, allowed, token)
	if seen.Failure != "" || len(seen.Visits) != 2 {
		t.Fatalf("%+v", seen)
	}
	for i, want := range []struct{ revision, words string }{{"2025-11-25", "a session"}, {"2026-07-28", "no session"}} {
		got := seen.Visits[i]
		if got.Revision != want.revision || !slices.Contains(got.Tools, "everything__echo") || !strings.Contains(got.Elicited, "the page") || !got.Closed {
			t.Errorf("%s: %+v", want.revision, got)
		}
		order := []string{want.words + " 1", want.words + " 2", want.words + " 3", "Long running operation completed. Duration: 1 seconds, Steps: 3."}
		if !slices.Equal(got.Order, order) {
			t.Errorf("%s: the call returned %q, want %q", want.revision, got.Order, order)
		}
		questions := []string{"Please provide inputs for the following fields:", "Who asks?"}[:i+1]
		if !slices.Equal(got.Questions, questions) {
			t.Errorf("%s: the page was asked %q", want.revision, got.Questions)
		}
		reports := []string{"no session 1", "no session 2", "no session 3"}[:3*i]
		if !slices.Equal(got.Reports, reports) {
			t.Errorf("%s: the call with an argument in a header reported %q", want.revision, got.Reports)
		}
	}
	if strange := slices.DeleteFunc(seen.Others, func(method string) bool { return method == "notifications/message" }); len(strange) > 0 {
		t.Errorf("unexpected notifications arrived: %q", strange)
	}

	if seen := openPage(t, s, other, token); seen.Failure != "TypeError: Failed to fetch" || len(seen.Visits) != 0 {
		t.Errorf("a page from an unlisted origin, with a valid token: %+v", seen)
	}
}
