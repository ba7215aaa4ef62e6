//go:build linux

package process_test

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ropewalk/ropewalk/core/process"
)

// firstThread prints whether a goroutine gets the first thread of a shim while the shim waits.
func firstThread() {
	runtime.GOMAXPROCS(1)
	_ = process.Shim(nil) // returns, because it has no arguments
	first := false
	for range 100 {
		thread := make(chan int)
		go func() { thread <- unix.Gettid() }()
		first = first || <-thread == os.Getpid()
	}
	fmt.Println("first:", first)
}

// If the thread in the sandbox were the first one, the kernel would let an app stop or kill its shim's process group.
func TestNothingEntersTheSandboxOnTheFirstThreadOfAShim(t *testing.T) {
	if got := output(t, start(t, command("first-thread"))); !strings.Contains(got, "first: false") {
		t.Errorf("%q", got)
	}
}
