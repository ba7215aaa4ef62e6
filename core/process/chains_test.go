//go:build linux

package process_test

import (
	"fmt"
	"io"
	"runtime"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ropewalk/ropewalk/core/process/sandbox"
)

const (
	chains     = 8
	chainLinks = 100_000 // if not killed, a chain ends on its own after a minute
)

// startChains starts processes that fork and exit immediately, each in its own session. A process has already ended by
// the time it is found in the process table.
func startChains() {
	for range chains {
		if pid, _, errno := syscall.RawSyscall(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0); errno == 0 && pid == 0 {
			runChain()
		}
	}
	fmt.Println("ready")
	<-time.After(time.Minute)
}

// runChain runs a chain, in a process with a single thread and without a working Go runtime.
//
//go:nosplit
func runChain() {
	pause := unix.Timespec{Nsec: 200_000}
	for range chainLinks {
		pid, _, errno := syscall.RawSyscall(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0)
		if errno != 0 || pid != 0 {
			break
		}
		_, _, _ = syscall.RawSyscall(unix.SYS_SETSID, 0, 0, 0)
		_, _, _ = syscall.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&pause)), 0, 0)
	}
	exitRaw()
}

//go:nosplit
func exitRaw() {
	for {
		_, _, _ = syscall.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
	}
}

// leaveZombies starts processes that exit, and does not wait for any of them.
func leaveZombies() {
	for range 100 {
		if pid, _, errno := syscall.RawSyscall(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0); errno == 0 && pid == 0 {
			exitRaw()
		}
	}
	<-time.After(time.Minute)
}

// startThreads starts idle threads.
func startThreads() {
	for range 400 {
		go func() {
			runtime.LockOSThread()
			select {}
		}()
	}
	<-time.After(time.Minute)
}

func TestProcessesThatForkFasterThanTheyAreFoundEndWithTheirApp(t *testing.T) {
	for _, level := range []sandbox.Level{sandbox.LevelNamespaces, sandbox.LevelLandlock} {
		t.Run(level.String(), func(t *testing.T) {
			p := start(t, confined(t, level, "chains"))
			if !awaitLine(p.Stdout(), "ready") {
				t.Fatal("the app did not start")
			}
			<-time.After(500 * time.Millisecond) // lets a few thousand processes start
			ended := make(chan error, 1)
			go func() { // its output ends when the last process that holds it ends
				_, err := io.Copy(io.Discard, p.Stdout())
				ended <- err
			}()
			if err := p.Stop(t.Context(), 10*time.Millisecond); err != nil {
				t.Fatal(err)
			}
			select {
			case err := <-ended:
				if err != nil {
					t.Fatal(err)
				}
			case <-time.After(testTimeout):
				t.Fatal("processes of the app are still running")
			}
		})
	}
}
