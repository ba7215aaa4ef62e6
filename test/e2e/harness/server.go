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

// Exists returns a function that reports whether a file exists.
func Exists(path string) func() bool {
	return func() bool { _, err := os.Stat(path); return err == nil }
}

// Workspace is the ID of the workspace that exists on every server.
const Workspace = "ws_default"

// Timeout is the maximum time for one step of a test, even on a busy machine.
const Timeout = 90 * time.Second

// Server is a running ropewalk server. Its methods fail the test if something goes wrong.
type Server struct {
	T       *testing.T
	Home    string
	Environ []string
	Args    []string

	User     *syscall.Credential // the user to run as; nil for the user that runs the tests
	Program  string              // the path of the executable; "" for the executable under test
	Database string              // the address of a PostgreSQL database; "" for a file in the home

	Cmd  *exec.Cmd
	Log  *testkit.Log // standard error
	Out  *testkit.Log // standard output
	URL  string
	Key  string // the API key that Object sends; "" for none
	Done chan struct{}
}

// Option changes the settings of a server before it starts.
type Option func(*Server)

// Env sets an environment variable, given as NAME=value.
func Env(variable string) Option { return func(s *Server) { s.Environ = append(s.Environ, variable) } }

// Flags adds arguments to the command ropewalk serve.
func Flags(args ...string) Option { return func(s *Server) { s.Args = append(s.Args, args...) } }

// Config writes ropewalk.yaml in the home.
func Config(yaml string) Option {
	return func(s *Server) { WriteFile(s.T, filepath.Join(s.Home, "ropewalk.yaml"), yaml) }
}

// Serve starts a server with its own home on a free port. When the test ends, the server stops. The test fails if any
// of the server's processes is still running.
func Serve(t *testing.T, options ...Option) *Server {
	t.Helper()
	s := &Server{T: t, Home: filepath.Join(t.TempDir(), "home"), Args: []string{"serve", "--port", "0"}}
	s.Environ = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "LANG=C.UTF-8", "GORACE=" + os.Getenv("GORACE")}
	s.Database = Databases.StateURL(t)
	for _, option := range options {
		option(s)
	}
	s.Start()
	t.Cleanup(func() {
		s.Stop()
		if left := Survivors(ProcessesFor(s.Home), Timeout); len(left) > 0 {
			t.Errorf("the server has exited, but these processes are still running:\n%v", left)
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

// Start starts the server. It can be called again after the server has exited and uses the same home.
func (s *Server) Start() {
	s.T.Helper()
	s.Log, s.Out, s.Done = &testkit.Log{}, &testkit.Log{}, make(chan struct{})
	s.Cmd = exec.Command(cmp.Or(s.Program, Binary(s.T)), append(s.Args, "--home", s.Home)...)
	http.DefaultClient.CloseIdleConnections() // closes connections to an earlier process at the same address
	if s.User != nil {
		s.Cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.User}
	}
	s.Cmd.Env, s.Cmd.Stderr, s.Cmd.Stdout = s.Environ, s.Log, s.Out
	if s.Database != "" {
		s.Cmd.Env = append(slices.Clone(s.Environ), "ROPEWALK_STORAGE_URL="+s.Database)
	}
	s.Cmd.WaitDelay = time.Second // do not wait for the output of a child that is still running
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

// Exited reports whether the process has exited.
func (s *Server) Exited() bool {
	select {
	case <-s.Done:
		return true
	default:
		return false
	}
}

// Processes returns all descendants of the server's process.
func (s *Server) Processes() []Process { return Descendants(s.Cmd.Process.Pid) }

// Kill kills the server with SIGKILL, like a crash.
func (s *Server) Kill() {
	s.T.Helper()
	if err := s.Cmd.Process.Kill(); err != nil {
		s.T.Fatal(err)
	}
	<-s.Done
}

// Stop stops the server with SIGTERM and returns the exit code. It may be called more than once.
func (s *Server) Stop() int {
	s.T.Helper()
	if err := s.Cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		s.T.Error(err)
	}
	select {
	case <-s.Done:
	case <-time.After(Timeout):
		s.T.Errorf("the server did not exit within %v after SIGTERM", Timeout)
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
