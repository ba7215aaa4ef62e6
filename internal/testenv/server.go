//go:build unix

package testenv

import (
	"context"
	"math/rand/v2"
	"net"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/internal/testkit"
)

// patience is how long a server may take to start or to stop.
const patience = time.Minute

// Server is a server process that a test started. It is not safe for concurrent use.
type Server struct {
	t       testing.TB
	command func() *exec.Cmd
	ready   func(context.Context) bool
	quit    syscall.Signal // makes it shut down cleanly and immediately

	cmd    *exec.Cmd
	output *testkit.Log
	ended  chan struct{}
}

// Start restarts the server after Stop or Kill, at the same address, and waits until it responds. It tries more than once:
// children of a killed server may hold its files for a moment longer, and another process may have its port.
func (s *Server) Start() {
	s.t.Helper()
	if !testkit.Within(patience, s.start) {
		s.t.Fatalf("%s did not start:\n%s", s.cmd.Path, s.output)
	}
}

func (s *Server) start() bool {
	s.t.Helper()
	s.cmd, s.output, s.ended = s.command(), &testkit.Log{}, make(chan struct{})
	s.cmd.Stdout, s.cmd.Stderr = s.output, s.output
	if err := s.cmd.Start(); err != nil {
		s.t.Fatalf("start %s: %v", s.cmd.Path, err)
	}
	cmd, ended := s.cmd, s.ended
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !s.ready(ctx) {
		select {
		case <-ended:
			return false
		case <-ctx.Done():
			s.Kill()
			return false
		case <-tick.C:
		}
	}
	return true
}

// Stop shuts the server down cleanly and waits until it has exited. Stopping a stopped server does nothing.
func (s *Server) Stop() { s.end(s.quit) }

// Kill kills the server with SIGKILL and waits until it has exited.
func (s *Server) Kill() { s.end(syscall.SIGKILL) }

// Pause suspends the server, with its connections open, until Resume.
func (s *Server) Pause() { _ = s.cmd.Process.Signal(syscall.SIGSTOP) }

// Resume ends a Pause.
func (s *Server) Resume() { _ = s.cmd.Process.Signal(syscall.SIGCONT) }

func (s *Server) end(signal syscall.Signal) {
	if s.cmd == nil || s.cmd.Process == nil {
		return
	}
	select {
	case <-s.ended:
		return
	default:
	}
	s.Resume()
	_ = s.cmd.Process.Signal(signal)
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-s.ended:
	case <-timer.C:
		_ = s.cmd.Process.Kill()
		<-s.ended
	}
}

// freePort returns a random port that was free a moment ago. The kernel assigns none of these ports to connections, or to
// listeners on port 0, so only another caller may take it. Callers that can retry with another port do so.
func freePort(t testing.TB) int {
	t.Helper()
	var err error
	for range 100 {
		port := firstPort + rand.IntN(firstAssigned-firstPort)
		var l net.Listener
		if l, err = (&net.ListenConfig{}).Listen(t.Context(), "tcp", address(port)); err == nil {
			_ = l.Close()
			return port
		}
	}
	t.Fatalf("find a free port: %v", err)
	return 0
}

// firstAssigned is the first port that Linux assigns itself (net.ipv4.ip_local_port_range).
const firstPort, firstAssigned = 20_000, 32_768

// FreePort is like freePort, for a server that the test starts itself and whose port it must know beforehand.
func FreePort(t testing.TB) int {
	t.Helper()
	return freePort(t)
}

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// attempts is how many ports to try, because another process may take one.
const attempts = 5
