//go:build linux

package process_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ropewalk/ropewalk/core/process"
	"github.com/ropewalk/ropewalk/core/process/sandbox"
	"github.com/ropewalk/ropewalk/internal/testkit"
)

// The test kills only the shim. Nothing looks for its processes: they can only end by themselves.
func TestProcessesAreStartedOnlyWhileTheirShimRuns(t *testing.T) {
	for _, level := range confinedLevels() {
		t.Run(level.String(), func(t *testing.T) {
			mark := newMark(t)
			p := start(t, confined(t, level, "chains", mark))
			if !awaitLine(p.Stdout(), "ready") {
				t.Fatal("the app did not start")
			}
			testkit.Eventually(t, "the chains are running", func() bool { return len(survivors(mark)) > 1 })
			kill(t, parent(t, p.PID()))
			gone(t, mark)
		})
	}
}

// abandonedServer has an app that leaves processes behind, which ignore signals, are named like a shim, or move.
func abandonedServer(mark string) error {
	dir, err := os.MkdirTemp("", "abandoned")
	if err != nil {
		return err
	}
	p, err := hostileTree(dir, mark, sandbox.LevelLandlock, "spare")
	if err != nil {
		return err
	}
	fmt.Println(p.PID())
	select {}
}

func TestTheNextServerEndsWhatAKilledServerAndItsShimsLeftBehind(t *testing.T) {
	other := start(t, confined(t, sandbox.LevelLandlock, "echo")) // is not to be taken for a leftover
	ended := 0
	for range 10 { // the servers of other tests end leftovers too
		mark := leaveBehind(t)
		ended = process.EndLeftovers()
		gone(t, mark)
		if ended > 0 {
			break
		}
	}
	if ended == 0 {
		t.Error("no process was ended")
	}
	_, _ = io.WriteString(other.Stdin(), "still here\n")
	_ = other.Stdin().Close()
	if got := output(t, other); !strings.HasSuffix(got, "still here\n") {
		t.Errorf("the other program printed %q", got)
	}
}

// leaveBehind kills a server and its shim. The processes of its app, which have the mark, keep running.
func leaveBehind(t *testing.T) (mark string) {
	t.Helper()
	mark, dir := newMark(t), filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	server := exec.CommandContext(t.Context(), self(), bundleArg, "abandoned-server", mark)
	server.Env = []string{"PATH=/usr/bin:/bin", "TMPDIR=" + dir}
	out, err := server.StdoutPipe()
	if err == nil {
		err = server.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Fscan(out, &pid); err != nil {
		t.Fatal(err)
	}
	shim := parent(t, pid)
	testkit.Eventually(t, "the program has started what it leaves behind", func() bool { return len(survivors(mark)) > len(tricks())/2 })
	if err := unix.Kill(shim, unix.SIGSTOP); err != nil { // so that it does not end its app first
		t.Fatal(err)
	}
	kill(t, server.Process.Pid)
	_ = server.Wait()
	kill(t, shim)
	testkit.Eventually(t, "the program itself has ended", func() bool { return unix.Kill(pid, 0) != nil })
	return mark
}
