//go:build linux

package process_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ropewalk/ropewalk/core/process"
)

func TestASignalToTheServersGroupLeavesTheAppsToTheServer(t *testing.T) {
	p := start(t, command("sleep"))
	ours, err1 := syscall.Getpgid(os.Getpid())
	theirs, err2 := syscall.Getpgid(p.PID())
	shim, err3 := syscall.Getpgid(parent(t, p.PID()))
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	if ours == theirs || ours == shim || shim == theirs {
		t.Errorf("groups: server %d, shim %d, program %d: all must differ", ours, shim, theirs)
	}
}

func TestAShimThatIsTerminatedEndsItsTree(t *testing.T) {
	p := start(t, command("graceful"))
	awaitLine(p.Stdout(), "ready")
	shim := parent(t, p.PID())
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGHUP, syscall.SIGTERM} { // the first two are ignored
		if err := syscall.Kill(shim, sig); err != nil {
			t.Fatal(err)
		}
	}
	if rest := output(t, p); rest != "goodbye\n" {
		t.Errorf("the program printed %q", rest)
	}
}

func TestAKilledShim(t *testing.T) {
	t.Run("takes its program with it", func(t *testing.T) {
		mark := newMark(t)
		p := start(t, command("sleep", mark))
		kill(t, parent(t, p.PID()))
		<-p.Done()
		if left, _ := soon(mark); len(left) > 0 {
			t.Errorf("survivors: %v", left)
		}
		if exit, ok := errors.AsType[*process.ExitError](p.Err()); !ok || exit.Code != 137 {
			t.Errorf("ended with %v, want 137", p.Err())
		}
	})
	t.Run("leaves its daemons to a server that adopts them", func(t *testing.T) {
		process.Adopt()
		t.Cleanup(func() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0) })
		mark := newMark(t)
		other := start(t, command("echo")) // must not be taken for an orphan
		p := start(t, command("tree", mark))
		awaitLine(p.Stdout(), "ready")
		kill(t, parent(t, p.PID()))
		<-p.Done()
		if left, _ := soon(mark); len(left) > 0 {
			t.Errorf("survivors: %v", left)
		}
		if z := zombies(); len(z) > 0 {
			t.Errorf("zombies: %v", z)
		}
		_, _ = io.WriteString(other.Stdin(), "still here\n")
		_ = other.Stdin().Close()
		if got := output(t, other); got != "still here\n" {
			t.Errorf("the other program printed %q", got)
		}
	})
}

func parent(t *testing.T, pid int) int {
	t.Helper()
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:]))[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestOnlyAVerifiedFileIsExecuted(t *testing.T) {
	dir := t.TempDir()
	script := []byte("#!/bin/sh\necho \"I am $1\"\n")
	path := filepath.Join(dir, "plugin")
	write := func(content []byte) {
		t.Helper()
		if err := os.WriteFile(path, content, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write(script)
	hash := sha256.Sum256(script)
	sum := hex.EncodeToString(hash[:])
	c := process.Command{Path: "plugin", Args: []string{"checked"}, Env: []string{"PATH=/bin:/usr/bin"}, Verified: &process.Verified{Path: path, SHA256: strings.ToUpper(sum)}}

	if got := output(t, start(t, c)); got != "I am checked\n" {
		t.Errorf("the verified script printed %q", got)
	}

	write([]byte("#!/bin/sh\necho \"I am someone else\"\n"))
	if _, err := process.Start(c); !errors.Is(err, process.ErrTampered) {
		t.Errorf("the replaced file: %v, want ErrTampered", err)
	}
	c.Verified = &process.Verified{Path: path, SHA256: "abc"}
	if _, err := process.Start(c); err == nil || !strings.Contains(err.Error(), "64 hexadecimal digits") {
		t.Errorf("a short sum: %v", err)
	}
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o700); err != nil {
		t.Fatal(err)
	}
	c.Verified = &process.Verified{Path: fifo, SHA256: sum}
	if _, err := process.Start(c); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a FIFO: %v", err)
	}
}

func TestAVerifiedScriptFindsTheFilesNextToIt(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "plugin")
	script := []byte("#!/bin/sh\n. \"$(dirname \"$(readlink -f \"$0\")\")/neighbour\"\n")
	for name, content := range map[string][]byte{path: script, filepath.Join(dir, "neighbour"): []byte("echo I am next to it\n")} {
		if err := os.WriteFile(name, content, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(t.TempDir(), "link") // as an operator would put it in the home
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	hash := sha256.Sum256(script)
	for _, at := range []string{path, link} {
		c := process.Command{Path: at, Env: []string{"PATH=/bin:/usr/bin"}, Verified: &process.Verified{Path: at, SHA256: hex.EncodeToString(hash[:])}}
		if got := output(t, start(t, c)); got != "I am next to it\n" {
			t.Errorf("started as %s it printed %q", at, got)
		}
	}
}

func TestAVerifiedBinaryIsExecuted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "binary")
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, self, 0o700); err != nil {
		t.Fatal(err)
	}
	hash := sha256.Sum256(self)
	c := command("args", "one", "two")
	c.Verified = &process.Verified{Path: path, SHA256: hex.EncodeToString(hash[:])}
	if got := output(t, start(t, c)); got != "one\ntwo\n" {
		t.Errorf("it printed %q", got)
	}
}

func TestAStartLeaksNoDescriptors(t *testing.T) {
	count := func() int {
		open, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(open)
	}
	run := func() {
		p := start(t, command("exit", "0"))
		_ = output(t, p)
		_ = p.Stdout().Close()
		_, _ = process.Start(process.Command{Path: "/none"})
	}
	run()
	before := count()
	for range 10 {
		run()
	}
	if after := count(); after > before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
}

func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		p, err := process.Start(process.Command{Path: "/bin/true"})
		if err != nil {
			b.Fatal(err)
		}
		<-p.Done()
		_ = p.Stdout().Close()
	}
}
