package operations

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/internal/testkit"
	"github.com/ropewalk/ropewalk/test/e2e/harness"
)

func TestSIGTERMWaitsForCallsInProgress(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t)
	s.Install(t, map[string]any{"path": harness.GoBundle(t, "slow", harness.WithChildren)})
	s.Listen(t) // an open stream must not delay the shutdown
	before := s.Processes()
	file := s.SharedFile("slow", "go on")
	answered := s.BeginCall(t.Context(), t, "slow", file)

	signalled := time.Now()
	if err := s.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if !testkit.Within(harness.Timeout, func() bool { return strings.Contains(s.Log.String(), "server shutting down") }) {
		t.Fatal("the server did not respond to SIGTERM")
	}
	harness.WriteFile(t, file, "")
	if a := <-answered; a.Status != 200 || a.Object(t)["result"] != "lasted" {
		t.Errorf("the call in flight: %d %s", a.Status, a.Body)
	}
	if status := s.Stop(); status != 0 {
		t.Errorf("exit status %d", status)
	}
	if took := time.Since(signalled); took > 28*time.Second {
		t.Errorf("the server took %v to exit", took)
	}
	if left := harness.Survivors(before, 20*time.Second); len(left) > 0 {
		t.Errorf("these processes are still running:\n%v", left)
	}
}
