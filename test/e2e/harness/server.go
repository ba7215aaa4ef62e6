package harness

import (
	"cmp"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/internal/testkit"
)

// Exists returns a condition that is true while there is a file at path.
func Exists(path string) func() bool {
	return func() bool { _, err := os.Stat(path); return err == nil }
}

// Workspace is the ID of the workspace that every server has.
const Workspace = "ws_default"

// Timeout is how long one step may take on a busy machine.
const Timeout = 90 * time.Second

// Server is a running ropewalk. Its methods fail the test if something goes wrong.
type Server struct {
	T       *testing.T
	Home    string
	Environ []string
	Args    []string

	User     *syscall.Credential // the user to run as; nil for the user of the tests
	Program  string              // its executable; "" for the one under test
	Database string              // the address of its PostgreSQL database; "" for a file in its home

	Cmd  *exec.Cmd
	Log  *testkit.Log // standard error
	Out  *testkit.Log // standard output
	URL  string
	Key  string // the key that Object sends; "" for none
	Done chan struct{}
}

// Option changes a server before it starts.
type Option func(*Server)

// Env sets an environment variable, NAME=value.
func Env(variable string) Option { return func(s *Server) { s.Environ = append(s.Environ, variable) } }

// Flags adds arguments to `ropewalk serve`.
func Flags(args ...string) Option { return func(s *Server) { s.Args = append(s.Args, args...) } }

// Config writes ropewalk.yaml into the home.
func Config(yaml string) Option {
	return func(s *Server) { WriteFile(s.T, filepath.Join(s.Home, "ropewalk.yaml"), yaml) }
}

// Serve starts a server with its own home on a free port. When the test ends, the server is stopped, and any process
// left over fails the test.
func Serve(t *testing.T, options ...Option) *Server {
	t.Helper()
	s := &Server{T: t, Home: filepath.Join(t.TempDir(), "home"), Args: []string{"serve", "--port", "0"}}
	s.Environ = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "LANG=C.UTF-8", "GORACE=" + os.Getenv("GORACE")}
	s.Database = Databases.Chosen(t)
	for _, option := range options {
		option(s)
	}
	s.Start()
	t.Cleanup(func() {
		s.Stop()
		if left := Survivors(ProcessesFor(s.Home), Timeout); len(left) > 0 {
			t.Errorf("the server has exited but these processes remain:\n%v", left)
		}
		if strings.Contains(s.Log.String(), "DATA RACE") {
			t.Error("the server has a data race")
		}
		if t.Failed() {
			t.Logf("server log:\n%s", s.Log.String())
		}
	})
	return s
}

var listening = regexp.MustCompile(`server listening.*url"?[=:]"?(https?://[^\s"]+)`)

// Start starts the server, or starts it again with the same home.
func (s *Server) Start() {
	s.T.Helper()
	s.Log, s.Out, s.Done = &testkit.Log{}, &testkit.Log{}, make(chan struct{})
	s.Cmd = exec.Command(cmp.Or(s.Program, Binary(s.T)), append(s.Args, "--home", s.Home)...)
	http.DefaultClient.CloseIdleConnections() // those to an earlier process at the same address
	if s.User != nil {
		s.Cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.User}
	}
	s.Cmd.Env, s.Cmd.Stderr, s.Cmd.Stdout = s.Environ, s.Log, s.Out
	if s.Database != "" {
		s.Cmd.Env = append(slices.Clone(s.Environ), "ROPEWALK_STORAGE_URL="+s.Database)
	}
	s.Cmd.WaitDelay = time.Second // a surviving child must not keep the test waiting for the end of its output
	if err := s.Cmd.Start(); err != nil {
		s.T.Fatal(err)
	}
	go func(cmd *exec.Cmd, ended chan struct{}) {
		defer close(ended)
		_ = cmd.Wait()
	}(s.Cmd, s.Done)
	found := testkit.Within(Timeout, func() bool {
		if at := listening.FindStringSubmatch(s.Log.String()); at != nil {
			s.URL = at[1]
			return true
		}
		return s.Exited()
	})
	if !found || s.Exited() {
		s.T.Fatalf("the server did not start:\n%s", s.Log.String())
	}
}

// Exited reports whether the process has ended.
func (s *Server) Exited() bool {
	select {
	case <-s.Done:
		return true
	default:
		return false
	}
}

// Processes returns every process under the server.
func (s *Server) Processes() []Process { return Descendants(s.Cmd.Process.Pid) }

// Kill ends the server with SIGKILL, as a crash would.
func (s *Server) Kill() {
	s.T.Helper()
	if err := s.Cmd.Process.Kill(); err != nil {
		s.T.Fatal(err)
	}
	<-s.Done
}

// Stop ends the server with SIGTERM and returns its exit code. It may be called more than once.
func (s *Server) Stop() int {
	s.T.Helper()
	if err := s.Cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		s.T.Error(err)
	}
	select {
	case <-s.Done:
	case <-time.After(Timeout):
		s.T.Errorf("the server did not exit within %v of SIGTERM", Timeout)
		s.Kill()
	}
	return s.Cmd.ProcessState.ExitCode()
}

// WriteFile writes a file and creates its parent directories.
func WriteFile(t *testing.T, path, content string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o600)); err != nil {
		t.Fatal(err)
	}
}
