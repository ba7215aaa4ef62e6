//go:build linux

package process_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/ropewalk/ropewalk/core/process"
	"github.com/ropewalk/ropewalk/core/process/sandbox"
	"github.com/ropewalk/ropewalk/internal/testenv"
)

// protected is a server that protects its own memory and then starts an app in a sandbox.
func protected(dir string) {
	exe, err := os.Executable()
	if err == nil {
		err = process.Protect()
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	c := command("exit", "0")
	c.Path, c.Dir = exe, dir
	c.Sandbox = &sandbox.Profile{Level: sandbox.LevelNamespaces, Read: append(sandbox.SystemPaths(), exe), Write: []string{dir}}
	p, err := process.Start(c)
	if err != nil {
		fmt.Println(err)
		return
	}
	<-p.Done()
	if p.Err() != nil {
		fmt.Println(p.Err())
		return
	}
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func TestAHostileAppReadsNothingFromAProtectedServer(t *testing.T) {
	testenv.NeedsNamespaces(t)
	server := exec.CommandContext(t.Context(), "/proc/self/exe", bundleArg, "protected", t.TempDir())
	server.Env = []string{"SECRET=" + canary}
	stdin, err := server.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = stdin.Close(), server.Wait() })
	if !awaitLine(out, "ready") {
		t.Fatal("the server did not start its app")
	}
	if os.Geteuid() == 0 {
		return // root may read; the test also runs as an ordinary user
	}
	if got := readsFile(proc(server.Process.Pid, "environ")); got != "" {
		t.Errorf("without a sandbox an app reads %s", got)
	}
	if got := opens(proc(server.Process.Pid, "mem"), os.O_RDONLY); got != "" {
		t.Errorf("without a sandbox an app opens %s", got)
	}
}
