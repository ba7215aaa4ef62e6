//go:build linux

package process_test

import (
	"io"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ropewalk/ropewalk/core/process"
)

// impersonate is a program that takes a shim's name and command line, forks twice and kills its shim.
func impersonate(mark string) {
	_ = os.WriteFile("/proc/self/comm", []byte("ropewalk-shim"), 0)
	double := launch(false, "daemonize-shim", mark)
	_ = double.Wait()
	_ = unix.Kill(os.Getppid(), unix.SIGKILL)
}

// namedShim waits under the name of a shim.
func namedShim() {
	_ = os.WriteFile("/proc/self/comm", []byte("ropewalk-shim"), 0)
	_, _ = os.Stdout.WriteString("ready\n")
	<-time.After(time.Hour)
}

func TestAProgramThatTakesAShimsNameAndKillsItsShimLeavesNoSurvivors(t *testing.T) {
	process.Adopt()
	t.Cleanup(func() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0) })
	other := start(t, command("echo")) // its shim must not be taken for an orphan
	mark := newMark(t)
	p := start(t, command("impersonate", mark))
	<-p.Done()
	if left, _ := soon(mark); len(left) > 0 {
		t.Errorf("survivors: %v", left)
	}
	_, _ = io.WriteString(other.Stdin(), "still here\n")
	_ = other.Stdin().Close()
	if got := output(t, other); got != "still here\n" {
		t.Errorf("the other program printed %q", got)
	}
}
