//go:build linux

package process_test

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ropewalk/ropewalk/core/process"
	"github.com/ropewalk/ropewalk/core/process/sandbox"
	"github.com/ropewalk/ropewalk/internal/chaos"
	"github.com/ropewalk/ropewalk/internal/testkit"
)

// hop is a shell script that replaces itself with a process in another session every 20 ms.
const hop = `trap "" TERM HUP INT; sleep 0.02; setsid sh -c "$0" "$0" "$1" & exit 0`

// tricks returns the ways in which the descendants of a hostile app try to outlive it. All of them also ignore signals.
func tricks() []string {
	return []string{"ignores", "new session", "forks twice", "named as a shim", "closes its descriptors", "moves"}
}

// trick runs one trick. It writes a byte to descriptor 3 when the trick is in place.
func trick(name, mark string) {
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	if name == "forks twice" {
		trickProcess("new session", mark, os.NewFile(3, "ready"))
		return
	}
	if name != "ignores" {
		_, _ = syscall.Setsid()
	}
	switch name {
	case "named as a shim":
		_ = os.WriteFile("/proc/self/comm", []byte("ropewalk-shim"), 0)
	case "moves":
		_ = exec.Command("sh", "-c", hop, hop, mark).Start()
	}
	_, _ = syscall.Write(3, []byte{1})
	switch name {
	case "closes its descriptors":
		for fd := range 4 {
			_ = syscall.Close(fd)
		}
	case "moves":
		return
	}
	<-time.After(time.Minute)
}

// trickProcess starts the process of a trick. It inherits this process's standard streams.
func trickProcess(name, mark string, ready *os.File) {
	cmd := exec.Command("/proc/self/exe", bundleArg, "trick", name, mark)
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = os.Stdout, os.Stderr, []*os.File{ready}
	if err := cmd.Start(); err != nil {
		fmt.Println("cannot start", name, err)
	}
}

// playTricks is a hostile app with a process for each trick. If kill is set, it also tries to kill its shim.
func playTricks(mark, kill string) {
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	reports, ready, err := os.Pipe()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, name := range tricks() {
		trickProcess(name, mark, ready)
	}
	for range tricks() {
		if _, err := reports.Read(make([]byte, 1)); err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println("ready")
	if kill == "kill" {
		_ = unix.Kill(os.Getppid(), unix.SIGKILL)
	}
	<-time.After(time.Minute)
}

// hostileTree starts an app that plays all tricks, at a level of the sandbox. If the sandbox does not prevent
// it from killing its shim, hostileTree returns when the shim is dead.
func hostileTree(dir, mark string, level sandbox.Level, kill string) (*process.Process, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := command("tricks", mark, kill)
	if level != sandbox.LevelNone {
		c.Path, c.Dir = exe, dir
		c.Sandbox = &sandbox.Profile{Level: level, Read: append(sandbox.SystemPaths(), exe), Write: []string{dir}}
	}
	p, err := process.Start(c)
	if err != nil {
		return nil, err
	}
	if !awaitLine(p.Stdout(), "ready") {
		return p, fmt.Errorf("the app at %v did not start", level)
	}
	if level == sandbox.LevelNone && kill == "kill" {
		<-p.Done()
	}
	return p, nil
}

// serveTricks is a server with n apps that play all tricks, at all levels.
func serveTricks(mark, dir, n string) {
	process.Adopt()
	apps, _ := strconv.Atoi(n)
	for i := range apps {
		level := allLevels()[i%len(allLevels())]
		kill := "kill"
		if level == sandbox.LevelNone {
			kill = "spare"
		}
		if _, err := hostileTree(dir, mark, level, kill); err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println("ready")
	<-time.After(time.Minute)
}

// allLevels returns the levels of the sandbox. In a chroot, it omits the highest level, which the kernel does not allow
// there.
func allLevels() []sandbox.Level {
	if sandbox.InChroot() {
		return []sandbox.Level{sandbox.LevelLandlock, sandbox.LevelNone}
	}
	return []sandbox.Level{sandbox.LevelNamespaces, sandbox.LevelLandlock, sandbox.LevelNone}
}

// gone waits until two counts in a row find no process with the mark. One count is not enough, because a process may
// fork and exit during the count.
func gone(t *testing.T, mark string) time.Duration {
	t.Helper()
	began := time.Now()
	for {
		left, _ := soon(mark)
		took := time.Since(began)
		if left = append(left, survivors(mark)...); len(left) == 0 {
			return took
		}
		if took > testTimeout {
			t.Fatalf("survivors: %v", left)
		}
	}
}

func TestNoTrickLetsAnAppSurviveAStop(t *testing.T) {
	process.Adopt()
	t.Cleanup(func() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0) })
	const grace = 10 * time.Millisecond
	var slowest time.Duration
	for round := range stops {
		mark, kill := newMark(t), "kill"
		if round/len(allLevels())%2 == 1 {
			kill = "spare"
		}
		p, err := hostileTree(t.TempDir(), mark, allLevels()[round%len(allLevels())], kill)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := p.Stop(t.Context(), grace); err != nil {
			t.Fatal(err)
		}
		gone(t, mark)
		slowest = max(slowest, time.Since(began)-grace)
		_ = p.Stdout().Close()
		if z := zombies(); len(z) > 0 {
			t.Fatalf("zombies: %v", z)
		}
	}
	chaos.Record(t, chaos.Row{
		Number: "7", Done: fmt.Sprintf("%d stops of an app with %d tricks, at the levels %v", stops, len(tricks())+1, allLevels()),
		Figure: fmt.Sprintf("no survivor, no zombie, the last %v after the grace period", slowest.Round(time.Millisecond)), Required: "none after 1 s", OK: slowest < time.Second,
	})
}

func TestNoTrickLetsAnAppSurviveItsKilledServer(t *testing.T) {
	var slowest time.Duration
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for range serverKills {
		mark := newMark(t)
		server := exec.Command("/proc/self/exe", bundleArg, "tricks-server", mark, dir, strconv.Itoa(trickyApps))
		out, err := server.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		if !awaitLine(out, "ready") {
			t.Fatal("the server did not start")
		}
		testkit.Eventually(t, "one process or more of each trick of each app is running", func() bool {
			return len(survivors(mark)) >= trickyApps*len(tricks())
		})
		kill(t, server.Process.Pid)
		slowest = max(slowest, gone(t, mark))
		_ = server.Wait()
	}
	chaos.Record(t, chaos.Row{
		Number: "8", Done: fmt.Sprintf("%d kills of a server with %d apps of %d tricks", serverKills, trickyApps, len(tricks())+1),
		Figure: fmt.Sprintf("no survivor, the last gone after %v", slowest.Round(time.Millisecond)), Required: "none after 1 s", OK: slowest < time.Second,
	})
}
