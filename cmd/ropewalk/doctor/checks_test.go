package doctor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/cli"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/control"
)

func TestACheckThatTimesOutIsReportedAsUnanswered(t *testing.T) {
	t.Parallel()
	var r Report
	r.addError("health", "GET /v1/health", fmt.Errorf("asking: %w", context.DeadlineExceeded), "restart the server")
	r.addError("health", "GET /v1/health", errors.New("500"), "restart the server")
	want := []Finding{
		{"health", warning, "GET /v1/health did not respond in time", "run doctor again when this machine is less busy; if nothing changes, restart the server"},
		{"health", failed, "GET /v1/health: 500", "restart the server"},
	}
	if !slices.Equal(r.Findings, want) {
		t.Errorf("got %+v", r.Findings)
	}
	for message, remedy := range map[string]string{
		"sessionStore: start: context deadline exceeded":           "less busy",
		"sessionStore: dial tcp 10.0.0.1:6379: connection refused": "can be reached",
		"sessionStore.url: must be a URL":                          "correct the section",
	} {
		if got := adapterRemedy(message); !strings.Contains(got, remedy) {
			t.Errorf("%s: %s", message, got)
		}
	}
}

func TestAFailureThatFollowsFromAnotherHasNoRemedyOfItsOwn(t *testing.T) {
	t.Parallel()
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }))
	defer proxy.Close()
	e := &examination{config: &config.Config{HTTP: config.HTTP{BaseURL: proxy.URL}}}
	e.checkBaseURL(t.Context())
	if f := e.Findings[0]; f.Result != warning || !strings.Contains(f.Detail, "returned 503") || !strings.Contains(f.Remedy, "cannot reach this server") {
		t.Errorf("a proxy that cannot reach the server: %+v", f)
	}
	e.Findings = nil
	e.addReadiness([]control.Check{
		{Name: "store"},
		{Name: "database", Err: "PostgreSQL cannot be reached"},
		{Name: "notices", Err: "PostgreSQL cannot be reached"},
		{Name: "identityProvider", Err: "one\ntwo", Advisory: true},
	})
	e.checkBaseURL(t.Context())
	if f := e.Findings; len(f) != 3 || f[0].Detail != "the server is not ready: database: PostgreSQL cannot be reached" || f[1].Detail != "one; two" || !strings.Contains(f[2].Remedy, "make the server ready first") {
		t.Errorf("a server without its database: %+v", f)
	}
}

func TestALoginPageThatFailsDoesNotMeanThatTheClientIsUnknown(t *testing.T) {
	t.Parallel()
	for status, want := range map[int][2]string{
		http.StatusBadRequest:         {"may have refused the client id or the redirect URI (400 Bad Request)", "register auth.clientId"},
		http.StatusTooManyRequests:    {"the provider's login page returned 429 Too Many Requests", "run doctor again"},
		http.StatusServiceUnavailable: {"the provider's login page returned 503 Service Unavailable", "run doctor again"},
	} {
		provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		t.Cleanup(provider.Close)
		e := &examination{config: &config.Config{}}
		settings := config.NewSettings([]byte(`{"clientId": "x", "redirectUri": "http://127.0.0.1/v1/auth/callback"}`))
		e.checkLogin(t.Context(), config.Auth{Plugin: config.Plugin{At: "auth", Settings: settings}}, provider.URL)
		if f := e.Findings; len(f) != 1 || f[0].Result != failed || !strings.Contains(f[0].Detail, want[0]) || !strings.Contains(f[0].Remedy, want[1]) {
			t.Errorf("%d: %+v", status, f)
		}
	}
}

func TestChecksRunConcurrentlyAndTheirFindingsKeepTheirOrder(t *testing.T) {
	t.Parallel()
	e := &examination{}
	e.add("configuration", ok, "there", "")
	var together sync.WaitGroup
	together.Add(2)
	meet := func(name string) check {
		return check{name, func(e *examination, _ context.Context) {
			together.Done()
			together.Wait() // each check waits for the other, so they would never end if they ran sequentially
			e.add(name, ok, "met", "")
		}}
	}
	clock := func(result string) check {
		return check{"clock", func(e *examination, _ context.Context) { e.add("clock", result, result, "") }}
	}
	var mu sync.Mutex
	var done []string
	e.sideBySide(t.Context(), []check{clock(ok), meet("a"), meet("b"), clock(failed)}, func(name string) {
		mu.Lock()
		defer mu.Unlock()
		done = append(done, name)
	})
	var found []string
	for _, f := range e.Findings {
		found = append(found, f.Check+" "+f.Result)
	}
	if want := []string{"configuration ok", "a ok", "b ok", "clock error"}; !slices.Equal(found, want) {
		t.Errorf("found %q, want %q", found, want)
	}
	if len(done) != 4 {
		t.Errorf("done: %q", done)
	}
}

func TestOneLineSaysWhatTheDoctorIsWaitingFor(t *testing.T) {
	t.Parallel()
	w := &wait{waiting: []string{"node", "the registry official", "the model"}}
	w.done("node")
	if got, want := w.line(), "Waiting for the registry official, the model"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	w.waiting = []string{"the registry official", "the registry mpak", "the identity provider"}
	if got, want := w.line(), "Waiting for the registry official, the registry mpak, the identity provider"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	w.waiting = slices.Repeat([]string{"the registry official"}, 7)
	if got := w.line(); len(got) > 76 || !strings.HasSuffix(got, " more") {
		t.Errorf("%q of %d characters", got, len(got))
	}
}

func TestAnUnreachableServerIsReportedInPlainText(t *testing.T) {
	t.Parallel()
	dial := func(err error) error {
		address := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 443}
		return &url.Error{Op: "Get", URL: "https://a.example", Err: &net.OpError{Op: "dial", Net: "tcp", Addr: address, Err: err}}
	}
	for want, err := range map[string]error{
		"the name a.example has no address":                                           dial(&net.DNSError{Name: "a.example", IsNotFound: true}),
		"the name a.example could not be looked up within 5s: no DNS server responds": dial(&net.DNSError{Name: "a.example", Err: "i/o timeout", IsTimeout: true}),
		"the name a.example could not be looked up (server misbehaving)":              dial(&net.DNSError{Name: "a.example", Err: "server misbehaving"}),
		"192.0.2.1:443: connection refused":                                           dial(os.NewSyscallError("connect", syscall.ECONNREFUSED)),
		"192.0.2.1:443 did not accept a connection within 5s":                         dial(os.ErrDeadlineExceeded),
		"no response within 10s":                                                      &url.Error{Op: "Get", URL: "https://a.example", Err: fmt.Errorf("awaiting headers: %w", context.DeadlineExceeded)},
		"tls: bad":                                                                    &url.Error{Op: "Get", URL: "https://a.example", Err: errors.New("tls: bad")},
	} {
		if got := reason(err); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestADatabaseOnAFullDiskIsNotReportedAsDamaged(t *testing.T) {
	t.Parallel()
	const where, detail, remedy = "/h/ropewalk.db", "/h/ropewalk.db: disk I/O error", "restore a backup"
	for blocked, want := range map[error]string{
		syscall.ENOSPC: "/h/ropewalk.db cannot be examined: no space left on device, free some space there, or choose another home with --home or ROPEWALK_HOME",
		syscall.EACCES: detail + ", " + remedy,
		nil:            detail + ", " + remedy,
	} {
		what, todo := unexamined(where, detail, remedy, blocked)
		if got := what + ", " + todo; got != want {
			t.Errorf("blocked by %v: %q, want %q", blocked, got, want)
		}
	}
}

func TestReportColumnsAlignWithColours(t *testing.T) {
	t.Parallel()
	report := Report{Findings: []Finding{{"disk", ok, "here", ""}, {"home", warning, "here", ""}, {"port", failed, "here", ""}}}
	var plain, coloured bytes.Buffer
	report.print(cli.NewOutput(&plain))
	report.print(cli.Styled(&coloured))
	text := coloured.String()
	if !strings.Contains(text, "\x1b[32mok") {
		t.Fatalf("no colors: %q", text)
	}
	for _, code := range []string{"\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[0m"} {
		text = strings.ReplaceAll(text, code, "")
	}
	if text != plain.String() {
		t.Errorf("with colors:\n%s\nwithout:\n%s", text, plain.String())
	}
}

func TestDoctorReportsTheSandboxOfTheRunningServer(t *testing.T) {
	t.Parallel()
	e := &examination{o: Options{Version: "1.2.3"}, running: &control.Status{Version: "1.2.3", Sandbox: control.Sandbox{
		Level: "landlock", OwnUser: true, Reason: "the server runs in a chroot", Chroot: true, Cgroup: []string{"memory"},
	}}}
	e.checkSandbox(t.Context())
	want := "level landlock, each app with its own user ID (the server runs in a chroot); the kernel enforces the limits on memory"
	if f := e.Findings[0]; f.Result != warning || f.Detail != want || f.Remedy != sandboxRemedy(true) {
		t.Errorf("found %+v, want a warning with %q and the remedy for a chroot", f, want)
	}
}

func TestDoctorSaysBeforehandThatAccountsCannotBeLinked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config config.Config
		want   string
	}{
		"a directory that cannot be written": {config.Config{Home: "/proc/self/home"}, "Accounts cannot be linked, because the key file /proc/self/home.state-key cannot be created"},
		"a shared database":                  {config.Config{Home: t.TempDir(), Storage: config.Storage{URL: "postgres://db/x"}}, "Accounts cannot be linked, because servers that share a database"},
		"a home that can be written to":      {config.Config{Home: t.TempDir()}, ""},
		"a home to be created":               {config.Config{Home: t.TempDir() + "/new/home"}, ""},
	} {
		e := &examination{config: &c.config}
		e.checkEncryption(t.Context())
		f := e.Findings[0]
		if linked := !strings.Contains(f.Detail, "cannot be linked"); !strings.Contains(f.Detail, c.want) || linked != (c.want == "") || !strings.Contains(f.Remedy, "ROPEWALK_STORAGE_KEY") {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

func TestARuntimeThatIsTooOldIsAWarning(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "node"), []byte("#!/bin/sh\necho v18.20.4\n"), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":/bin:/usr/bin")
	for oldest, want := range map[int]string{18: ok, 20: warning} {
		var e examination
		e.checkRuntime(t.Context(), program{name: "node", args: "--version", need: "npm packages", oldest: oldest})
		if len(e.Findings) != 1 || e.Findings[0].Result != want {
			t.Errorf("%d: %+v", oldest, e.Findings)
		}
	}
}
