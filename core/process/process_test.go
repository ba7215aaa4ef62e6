//go:build linux

package process_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/core/process"
	"github.com/ropewalk/ropewalk/core/process/sandbox"
	"github.com/ropewalk/ropewalk/internal/testkit"
)

func start(t testing.TB, c process.Command) *process.Process {
	t.Helper()
	p, err := process.Start(c)
	if err != nil {
		t.Fatalf("start: %v", err)
	}
	t.Cleanup(func() {
		p.Kill()
		<-p.Done()
		_ = p.Stdout().Close()
	})
	return p
}

func output(t *testing.T, p *process.Process) string {
	t.Helper()
	out, err := io.ReadAll(p.Stdout())
	if err != nil {
		t.Fatalf("read the output: %v", err)
	}
	<-p.Done()
	return string(out)
}

func TestAProgramGetsItsStreamsAndNothingElseFromTheServer(t *testing.T) {
	t.Setenv("CANARY", "of the server")
	dir := t.TempDir()

	echo := start(t, command("echo"))
	_, _ = io.WriteString(echo.Stdin(), "over and back\n")
	_ = echo.Stdin().Close()
	if got := output(t, echo); got != "over and back\n" {
		t.Errorf("echo printed %q", got)
	}

	env := command("env")
	env.Env, env.Dir = []string{"ONE=1", "TWO=a b\"c$d\nnext"}, dir
	if got, want := output(t, start(t, env)), "ONE=1\nTWO=a b\"c$d\nnext\ndir="+dir+"\n"; got != want {
		t.Errorf("the environment is %q, want %q", got, want)
	}

	bare := command("env")
	bare.Env, bare.Dir = nil, dir
	if got, want := output(t, start(t, bare)), "\ndir="+dir+"\n"; got != want {
		t.Errorf("without an environment it is %q, want %q", got, want)
	}

	words := []string{"", "a b", "$HOME", "`id`", "\"'\\", "*", "-rf", "--"}
	if got, want := output(t, start(t, command("args", words...))), strings.Join(words, "\n")+"\n"; got != want {
		t.Errorf("the arguments are %q, want %q", got, want)
	}
}

// commandLine returns the name and the arguments of p. It waits, because the kernel shows an empty command line just
// after the start of a program.
func commandLine(t *testing.T, p *process.Process) (line []string) {
	t.Helper()
	testkit.Eventually(t, "a command line", func() bool {
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.PID()))
		line = strings.Split(strings.TrimSuffix(string(raw), "\x00"), "\x00")
		return err == nil && len(raw) > 0
	})
	return line
}

func TestAProgramsNameMayDifferFromItsFile(t *testing.T) {
	c := command("echo")
	for name, want := range map[string]string{"": c.Path, "a name of two": "a name of two"} {
		c.Name = name
		p := start(t, c)
		if got := commandLine(t, p)[0]; got != want {
			t.Errorf("with the name %q it is called %q, want %q", name, got, want)
		}
	}
}

func TestStandardErrorGoesToTheWriter(t *testing.T) {
	var log bytes.Buffer
	c := command("stderr")
	c.Stderr = &log
	<-start(t, c).Done()
	if log.String() != "something is wrong\n" {
		t.Errorf("stderr is %q", log.String())
	}
}

func TestTheExitOfAProgramIsReported(t *testing.T) {
	cases := map[string]struct {
		command process.Command
		want    *process.ExitError
	}{
		"status 0 is not an error":          {command("exit", "0"), nil},
		"a status is passed on":             {command("exit", "3"), &process.ExitError{Code: 3}},
		"status 126 comes from the program": {command("exit", "126"), &process.ExitError{Code: 126}},
		"a signal is 128 plus its number":   {command("die", "15"), &process.ExitError{Code: 143, Signal: "terminated"}},
		"SIGKILL from elsewhere":            {command("die", "9"), &process.ExitError{Code: 137, Signal: "killed"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := start(t, c.command)
			<-p.Done()
			var got *process.ExitError
			errors.As(p.Err(), &got)
			if (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
				t.Errorf("ended with %v, want %v", got, c.want)
			}
		})
	}
}

func TestTheErrorForAProgramThatCannotBeExecutedSaysWhatToDo(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	cases := map[string]struct {
		command process.Command
		want    string
	}{
		"a name that is not on PATH":        {process.Command{Path: "node-that-is-not-there", Env: []string{"PATH=/usr/bin"}}, `command "node-that-is-not-there" not found`},
		"a name without any PATH":           {process.Command{Path: "sh"}, `command "sh" not found`},
		"a missing file":                    {process.Command{Path: filepath.Join(dir, "none")}, "does not exist"},
		"a file without execute permission": {process.Command{Path: file("plain", "#!/bin/sh\n", 0o600)}, "may not be executed"},
		"a directory":                       {process.Command{Path: dir}, "may not be executed"},
		"a file that is not a program":      {process.Command{Path: file("text", "hello", 0o700)}, "not a program that this machine can execute"},
		"a missing interpreter":             {process.Command{Path: file("script", "#!/no/such/thing\n", 0o700)}, "interpreter"},
		"a missing working directory":       {process.Command{Path: self(), Dir: filepath.Join(dir, "gone")}, "working directory"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := process.Start(c.command)
			startErr, ok := errors.AsType[*process.StartError](err)
			if !ok || !strings.Contains(startErr.Error(), c.want) {
				t.Errorf("the error is %v, want a StartError with %q", err, c.want)
			}
		})
	}
}

func TestStoppingEndsTheWholeProcessTree(t *testing.T) {
	cases := map[string]struct {
		kind string
		end  func(t *testing.T, p *process.Process)
	}{
		"when the program exits on its own": {"leave", func(*testing.T, *process.Process) {}},
		"when it is stopped": {"tree", func(t *testing.T, p *process.Process) {
			if err := p.Stop(t.Context(), 50*time.Millisecond); err != nil {
				t.Error(err)
			}
		}},
		"when it is stopped without grace": {"tree", func(t *testing.T, p *process.Process) {
			if err := p.Stop(t.Context(), 0); err != nil {
				t.Error(err)
			}
		}},
		"when the context of a stop ends before its grace": {"tree", func(t *testing.T, p *process.Process) {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			if err := p.Stop(ctx, time.Hour); err != nil {
				t.Error(err)
			}
		}},
		"when it is killed": {"tree", func(_ *testing.T, p *process.Process) { p.Kill() }},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			mark := newMark(t)
			p := start(t, command(c.kind, mark))
			if !awaitLine(p.Stdout(), "ready") {
				t.Fatal("the tree did not start")
			}
			if c.kind == "tree" {
				testkit.Eventually(t, "the shim, the program and 5 descendants are running", func() bool {
					return len(survivors(mark)) == 7 // a program that was just started has no command line at first
				})
			}
			c.end(t, p)
			rest, err := io.ReadAll(p.Stdout()) // a daemon held it open
			if err != nil {
				t.Errorf("the output did not end cleanly after %q: %v", rest, err)
			}
			<-p.Done()
			if left := survivors(mark); len(left) > 0 {
				t.Errorf("survivors: %v", left)
			}
			if z := zombies(); len(z) > 0 {
				t.Errorf("zombies: %v", z)
			}
		})
	}
}

func TestAStopGivesTheProgramItsGracePeriod(t *testing.T) {
	p := start(t, command("graceful"))
	awaitLine(p.Stdout(), "ready")
	if err := p.Stop(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	if rest := output(t, p); rest != "goodbye\n" {
		t.Errorf("it printed %q before it ended", rest)
	}
	if exit, ok := errors.AsType[*process.ExitError](p.Err()); !ok || exit.Code != 7 {
		t.Errorf("ended with %v, want status 7", p.Err())
	}
	if err := p.Stop(t.Context(), time.Minute); err != nil {
		t.Errorf("a second stop: %v", err)
	}
}

func TestAnExitIsNoticedAtOnce(t *testing.T) {
	p := start(t, command("sleep"))
	killed := time.Now()
	kill(t, p.PID())
	<-p.Done()
	if took := time.Since(killed); took > 30*time.Second {
		t.Errorf("noticed after %v", took)
	}
}

func TestPIDIsTheProgramsOwn(t *testing.T) {
	mark := newMark(t)
	p := start(t, command("sleep", mark))
	if line := commandLine(t, p); !slices.Equal(line[1:], []string{bundleArg, "sleep", mark}) {
		t.Errorf("the process runs %q", line)
	}
}

func TestAProgramsActivityIncludesItsChildrenAndItsProcessorTime(t *testing.T) {
	for script, want := range map[string]func(process.Activity) bool{
		"sleep 60; :":                 func(a process.Activity) bool { return len(a.Processes) == 2 && a.CPUTime < 50*time.Millisecond },
		"exec sleep 60":               func(a process.Activity) bool { return len(a.Processes) == 1 && !a.Connected },
		"while :; do :; done":         func(a process.Activity) bool { return a.CPUTime >= 50*time.Millisecond },
		"(sleep 60 &) ; exec sleep 9": func(a process.Activity) bool { return len(a.Processes) == 2 },
	} {
		p, err := process.Start(process.Command{Path: "/bin/sh", Args: []string{"-c", script}, Env: []string{"PATH=/usr/bin:/bin"}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Kill)
		testkit.Eventually(t, script, func() bool {
			a, ok := p.Activity()
			return ok && want(a)
		})
	}
}

func TestAProgramWithASocketIsConnected(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	address := listener.Addr().String()
	for _, level := range []sandbox.Level{sandbox.LevelNone, sandbox.LevelLandlock, sandbox.LevelNamespaces} {
		t.Run(level.String(), func(t *testing.T) {
			c := command("dial", address)
			if level > sandbox.LevelNone {
				c = confined(t, level, "dial", address)
				c.Sandbox.Network = sandbox.Network{Also: []string{address}}
			}
			p := start(t, c)
			testkit.Eventually(t, "it is connected", func() bool {
				a, ok := p.Activity()
				return ok && a.Connected
			})
		})
	}
}

func TestAProgramIsBusyWhileItComputes(t *testing.T) {
	for script, want := range map[string]bool{"while :; do :; done": true, "sleep 60": false} {
		p, err := process.Start(process.Command{Path: "/bin/sh", Args: []string{"-c", script}, Env: []string{"PATH=/usr/bin:/bin"}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Kill)
		testkit.Eventually(t, script, func() bool { return p.Busy() == want })
		if err := syscall.Kill(p.PID(), syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, script+", stopped", func() bool { return !p.Busy() })
	}
}
