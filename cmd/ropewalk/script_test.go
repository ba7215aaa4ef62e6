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

// executables are ropewalk and some adapters as plugins: the folder built holds them once a test has
// made its script.
var (
	executables sync.Once
	built       string
)

// The test binary is also the plugins that lie, each under its file name.
func TestMain(m *testing.M) {
	if lie, ok := lies()[filepath.Base(os.Args[0])]; ok && os.Getenv(host.Cookie) != "" {
		sessionstore.Serve(lie)
		return
	}
	if filepath.Base(os.Args[0]) == "auth-talkative" && os.Getenv(host.Cookie) != "" {
		auth.Serve(&talkative{oidc.New()})
		return
	}
	// The two tests that take longest are not parallel, though their parts are: so they come first.
	if err := testkit.Parallel("3"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// lies are session stores that break one promise each.
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

// talkative prints what it is given, to both of its streams.
type talkative struct{ *oidc.Adapter }

func (t *talkative) Verify(ctx context.Context, req auth.VerifyRequest) (auth.Identity, error) {
	fmt.Fprintln(os.Stderr, "who is", req.Token)
	return t.Adapter.Verify(ctx, req)
}

func (t *talkative) Exchange(ctx context.Context, req auth.ExchangeRequest) (auth.Identity, error) {
	fmt.Println("exchanging", base64.StdEncoding.EncodeToString([]byte(req.Code)))
	return t.Adapter.Exchange(ctx, req)
}

// forgetful says that it put what it did not.
type forgetful struct{ sessionstore.Store }

func (*forgetful) Put(context.Context, sessionstore.Record, time.Duration) error { return nil }

// careless takes any settings.
type careless struct{ sessionstore.Store }

func (*careless) Configure(context.Context, plugins.Config) error { return nil }

// rude fails where it should tell of a problem.
type rude struct{ sessionstore.Store }

func (*rude) Configure(_ context.Context, c plugins.Config) error {
	if c.Decode(&struct{}{}) != nil {
		return plugins.ErrUnavailable
	}
	return nil
}

// vague tells of a problem, but not of which setting.
type vague struct{ sessionstore.Store }

func (*vague) Configure(_ context.Context, c plugins.Config) error {
	problems := &plugins.ConfigError{}
	if c.Decode(&struct{}{}) != nil {
		problems.Add("", "something is wrong")
	}
	return problems.Err()
}

// nameless does not say which version it is.
type nameless struct{ sessionstore.Store }

func (*nameless) Version() string { return "" }

// mortal dies of an empty batch.
type mortal struct{ sessionstore.Store }

func (m *mortal) Touch(ctx context.Context, batch []sessionstore.Touch) error {
	if len(batch) == 0 {
		os.Exit(3)
	}
	return m.Store.Touch(ctx, batch)
}

// durable says that its sessions outlive its process.
type durable struct{ *memory.Store }

func (*durable) Durable() {}

// liar puts a lying plugin into dir and returns its path.
func liar(t *testing.T, dir, name string) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return install(t, exe, filepath.Join(dir, name))
}

// install copies an executable.
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

// script runs commands in a folder and a home of its own.
type script struct {
	t         *testing.T
	dir, home string
	environ   []string // beside the test's own
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

// write writes a file into the folder of the script, or at an absolute path.
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

// run runs a command to its end.
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

// said is what a command said, and its exit status.
type said struct {
	t          *testing.T
	line, text string
	status     int
}

// exits wants a status, and every one of the texts said.
func (s said) exits(status int, texts ...string) said {
	s.t.Helper()
	if s.status != status {
		s.t.Fatalf("%s: exited with %d, want %d; it said:\n%s", s.line, s.status, status, s.text)
	}
	for _, text := range texts {
		if !strings.Contains(s.text, text) {
			s.t.Errorf("%s: did not say %q; it said:\n%s", s.line, text, s.text)
		}
	}
	return s
}

// row is the cells of the one line that begins with the given cells.
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
		s.t.Fatalf("%s: has %d lines of %v; it said:\n%s", s.line, len(found), begin, s.text)
	}
	return found[0]
}
