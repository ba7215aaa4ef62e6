package main_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/internal/testenv"
	"github.com/ropewalk/ropewalk/internal/testkit"
	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth"
	"github.com/ropewalk/ropewalk/plugins/auth/oidc"
	"github.com/ropewalk/ropewalk/plugins/host"
	"github.com/ropewalk/ropewalk/plugins/sessionstore"
	"github.com/ropewalk/ropewalk/plugins/sessionstore/memory"
)

// The executables are ropewalk and some adapters as plugins. They are in the directory `built` once a test
// has created a script.
var (
	executables sync.Once
	built       string
)

// TestMain runs the tests, or a faulty plugin if the test binary is started under that plugin's file name.
func TestMain(m *testing.M) {
	if lie, ok := lies()[filepath.Base(os.Args[0])]; ok && os.Getenv(host.Cookie) != "" {
		sessionstore.Serve(lie)
		return
	}
	if filepath.Base(os.Args[0]) == "auth-talkative" && os.Getenv(host.Cookie) != "" {
		auth.Serve(&talkative{oidc.New()})
		return
	}
	// The two slowest tests are not parallel, but their parts are, so they run first.
	if err := testkit.Parallel("3"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// lies returns session stores, each of which violates one rule of the contract.
func lies() map[string]sessionstore.Store {
	return map[string]sessionstore.Store{
		"sessionstore-forgetful": &forgetful{memory.New()},
		"sessionstore-durable":   &durable{memory.New()},
		"sessionstore-faulty":    &faulty{Store: memory.New()},
		"sessionstore-careless":  &careless{memory.New()},
		"sessionstore-mortal":    &mortal{memory.New()},
		"sessionstore-nameless":  &nameless{memory.New()},
		"sessionstore-rude":      &rude{memory.New()},
		"sessionstore-vague":     &vague{memory.New()},
	}
}

// talkative prints its input to standard output and standard error.
type talkative struct{ *oidc.Adapter }

func (t *talkative) Verify(ctx context.Context, req auth.VerifyRequest) (auth.Identity, error) {
	fmt.Fprintln(os.Stderr, "who is", req.Token)
	return t.Adapter.Verify(ctx, req)
}

func (t *talkative) Exchange(ctx context.Context, req auth.ExchangeRequest) (auth.Identity, error) {
	fmt.Println("exchanging", base64.StdEncoding.EncodeToString([]byte(req.Code)))
	return t.Adapter.Exchange(ctx, req)
}

// forgetful reports success for a Put without storing anything.
type forgetful struct{ sessionstore.Store }

func (*forgetful) Put(context.Context, sessionstore.Record, time.Duration) error { return nil }

// careless accepts any settings.
type careless struct{ sessionstore.Store }

func (*careless) Configure(context.Context, plugins.Config) error { return nil }

// rude returns the wrong error for invalid settings.
type rude struct{ sessionstore.Store }

func (*rude) Configure(_ context.Context, c plugins.Config) error {
	if c.Decode(&struct{}{}) != nil {
		return plugins.ErrUnavailable
	}
	return nil
}

// vague reports a problem with its settings, but not which setting.
type vague struct{ sessionstore.Store }

func (*vague) Configure(_ context.Context, c plugins.Config) error {
	problems := &plugins.ConfigError{}
	if c.Decode(&struct{}{}) != nil {
		problems.Add("", "something is wrong")
	}
	return problems.Err()
}

// nameless does not report its version.
type nameless struct{ sessionstore.Store }

func (*nameless) Version() string { return "" }

// mortal exits when it gets an empty batch.
type mortal struct{ sessionstore.Store }

func (m *mortal) Touch(ctx context.Context, batch []sessionstore.Touch) error {
	if len(batch) == 0 {
		os.Exit(3)
	}
	return m.Store.Touch(ctx, batch)
}

// durable claims that its sessions survive a restart of its process.
type durable struct{ *memory.Store }

func (*durable) Durable() {}

// liar puts a faulty plugin into dir and returns its path.
func liar(t *testing.T, dir, name string) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return install(t, exe, filepath.Join(dir, name))
}

// install copies an executable and returns the path of the copy.
func install(t *testing.T, from, to string) string {
	t.Helper()
	content, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, content, 0o755); err != nil {
		t.Fatal(err)
	}
	return to
}

// script runs commands in its own directory and with its own home.
type script struct {
	t         *testing.T
	dir, home string
	environ   []string // in addition to the environment of the test
}

func newScript(t *testing.T) *script {
	t.Helper()
	executables.Do(func() {
		built = testenv.Executables(t, "ropewalk", "sessionstore-memory", "auth-oidc", "auth-static", "registry-directory")
	})
	if built == "" {
		t.Fatal("the executables were not built: see the first test that failed")
	}
	return &script{t: t, dir: t.TempDir(), home: t.TempDir()}
}

func (s *script) command(name string, args ...string) *exec.Cmd {
	if name == "ropewalk" {
		name = filepath.Join(built, name)
	}
	cmd := exec.CommandContext(s.t.Context(), name, args...)
	cmd.Dir, cmd.Env = s.dir, append(os.Environ(), testenv.GoEnviron()...)
	cmd.Env = append(append(cmd.Env, "ROPEWALK_HOME="+s.home, "PWD="+s.dir), s.environ...)
	return cmd
}

// write writes a file in the script's directory, or at an absolute path, and returns its path.
func (s *script) write(path, text string) string {
	s.t.Helper()
	if !filepath.IsAbs(path) {
		path = filepath.Join(s.dir, path)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return path
}

// run runs a command and waits for it to end.
func (s *script) run(line ...string) said {
	s.t.Helper()
	var out bytes.Buffer
	cmd := s.command(line[0], line[1:]...)
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended {
		s.t.Fatalf("%s: %v", strings.Join(line, " "), err)
	}
	return said{s.t, strings.Join(line, " "), out.String(), cmd.ProcessState.ExitCode()}
}

// said is the output of a command and its exit status.
type said struct {
	t          *testing.T
	line, text string
	status     int
}

// exits checks the exit status, and that the output contains all of the strings.
func (s said) exits(status int, texts ...string) said {
	s.t.Helper()
	if s.status != status {
		s.t.Fatalf("%s: exited with %d, want %d; its output:\n%s", s.line, s.status, status, s.text)
	}
	for _, text := range texts {
		if !strings.Contains(s.text, text) {
			s.t.Errorf("%s: %q is missing from its output:\n%s", s.line, text, s.text)
		}
	}
	return s
}

// row returns the cells of the only line that starts with the given cells.
func (s said) row(begin ...string) []string {
	s.t.Helper()
	var found [][]string
	for line := range strings.Lines(s.text) {
		cells := strings.Fields(line)
		if len(cells) >= len(begin) && strings.Join(cells[:len(begin)], " ") == strings.Join(begin, " ") {
			found = append(found, cells)
		}
	}
	if len(found) != 1 {
		s.t.Fatalf("%s: got %d lines, want %v; its output:\n%s", s.line, len(found), begin, s.text)
	}
	return found[0]
}
