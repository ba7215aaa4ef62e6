package e2e

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// workspace is the id of the workspace that every server has.
const workspace = "ws_default"

// patience is how long anything may take on a machine that has other things to do.
const patience = 30 * time.Second

// server is a running ropewalk. Its methods fail the test they are called in.
type server struct {
	t    *testing.T
	home string
	env  []string
	args []string

	database string // the address of the one it keeps things in; "" when that is a file in its home

	cmd   *exec.Cmd
	log   *transcript // standard error
	out   *transcript // standard output
	url   string
	ended chan struct{}
}

// with changes a server before it starts.
type with func(*server)

func env(variable string) with { return func(s *server) { s.env = append(s.env, variable) } }
func flag(args ...string) with { return func(s *server) { s.args = append(s.args, args...) } }

// config writes ropewalk.yaml into the home.
func config(yaml string) with {
	return func(s *server) { write(s.t, filepath.Join(s.home, "ropewalk.yaml"), yaml) }
}

// serve starts a server with a home of its own on a free port. When the test ends it is notified to
// end, and nothing of it may be left.
func serve(t *testing.T, options ...with) *server {
	t.Helper()
	s := &server{t: t, home: filepath.Join(t.TempDir(), "home"), args: []string{"serve", "--port", "0"}}
	s.env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "LANG=C.UTF-8"}
	s.database = databases.Chosen(t)
	for _, option := range options {
		option(s)
	}
	s.start()
	t.Cleanup(func() {
		s.terminate()
		if left := survivors(mentioning(s.home), time.Second); len(left) > 0 {
			t.Errorf("the server has ended and these processes are left:\n%v", left)
		}
		if strings.Contains(s.log.String(), "DATA RACE") {
			t.Error("the server has a data race")
		}
		if t.Failed() {
			t.Logf("what the server said:\n%s", s.log.String())
		}
	})
	return s
}

var answersAt = regexp.MustCompile(`server listening.*url=(http://\S+)`)

// start starts the server, on the same home as before if there was one.
func (s *server) start() {
	s.t.Helper()
	s.log, s.out, s.ended = &transcript{}, &transcript{}, make(chan struct{})
	s.cmd = exec.Command(binary, append(s.args, "--home", s.home)...)
	s.cmd.Env, s.cmd.Stderr, s.cmd.Stdout = s.env, s.log, s.out
	if s.database != "" {
		s.cmd.Env = append(slices.Clone(s.env), "ROPEWALK_STORAGE_URL="+s.database)
	}
	s.cmd.WaitDelay = time.Second // a survivor must not keep the test waiting for the end of its output
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	go func(cmd *exec.Cmd, ended chan struct{}) {
		defer close(ended)
		_ = cmd.Wait()
	}(s.cmd, s.ended)
	found := eventually(patience, func() bool {
		if at := answersAt.FindStringSubmatch(s.log.String()); at != nil {
			s.url = at[1]
			return true
		}
		return s.hasEnded()
	})
	if !found || s.hasEnded() {
		s.t.Fatalf("the server did not start:\n%s", s.log.String())
	}
}

func (s *server) hasEnded() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// family is every process under the server.
func (s *server) family() []process { return descendants(s.cmd.Process.Pid) }

// kill ends the server as a crash would: it cannot do anything about it.
func (s *server) kill() {
	s.t.Helper()
	if err := s.cmd.Process.Kill(); err != nil {
		s.t.Fatal(err)
	}
	<-s.ended
}

// terminate tells the server to end and returns its exit status. A server that has ended stays so.
func (s *server) terminate() int {
	s.t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		s.t.Error(err)
	}
	select {
	case <-s.ended:
	case <-time.After(patience):
		s.t.Errorf("the server did not end within %v of SIGTERM", patience)
		s.kill()
	}
	return s.cmd.ProcessState.ExitCode()
}

// transcript is what a process has said so far.
type transcript struct {
	mu   sync.Mutex
	text strings.Builder
}

func (t *transcript) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.Write(p)
}

func (t *transcript) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}

// write writes a file and the folders it is in.
func write(t *testing.T, path, content string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o600)); err != nil {
		t.Fatal(err)
	}
}
