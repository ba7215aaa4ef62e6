//go:build unix

package process

import (
	"bufio"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// How a shim finds the file to execute.
const (
	byPath       = "path"
	byDescriptor = "fd"
)

const (
	exitUsage       = 125
	exitCannotExec  = 126
	signalGrace     = 5 * time.Second // for a shim that is sent SIGTERM itself
	killLimit       = 10 * time.Second
	killPause       = 2 * time.Millisecond
	exitSignalShift = 128
)

// ShimMain is the whole life of a shim; args are the arguments after ShimArg. The exit status is
// the program's own, 128+n when signal n ended it, 126 when it could not be executed. It comes back
// for wrong arguments only: a shim ends its process directly, as it has nothing to clean up, and a
// binary built with the race detector would linger for a second.
func ShimMain(args []string) int {
	if len(args) < 2 {
		_, _ = fmt.Fprintln(os.Stderr, "this command is for the server's own use")
		return exitUsage
	}
	// The kernel ties a child's parent-death signal to the thread that forked it.
	runtime.LockOSThread()
	s := &shim{line: os.NewFile(lineFD, "life line"), exited: make(chan syscall.WaitStatus, 1), gone: make(chan struct{})}
	syscall.CloseOnExec(lineFD)
	becomeReaper()
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT)
	if err := s.spawn(args[0] == byDescriptor, args[1], args[1:]); err != nil {
		s.say("failed %s\n", err)
		_, _ = fmt.Fprintln(os.Stderr, err)
		syscall.Exit(exitCannotExec)
	}
	s.say("started %d\n", s.child)
	letGoOfStreams()
	go s.reap()
	syscall.Exit(s.watch(s.listen(), signals))
	return exitUsage // not reached
}

// shim is the state of one shim process.
type shim struct {
	line   *os.File
	child  int
	exited chan syscall.WaitStatus
	gone   chan struct{} // closed when no descendant is left
}

func (s *shim) say(format string, args ...any) {
	_, _ = fmt.Fprintf(s.line, format, args...)
}

// letGoOfStreams leaves the program as the only holder of its streams, so that their ends are
// seen at once.
func letGoOfStreams() {
	null, err := syscall.Open(os.DevNull, syscall.O_RDWR, 0)
	if err != nil {
		return
	}
	for fd := range 3 {
		_ = duplicate(null, fd)
	}
	if null > 2 {
		_ = syscall.Close(null)
	}
}

// reap waits for every descendant that ends as a child of the shim. On Linux all of them do.
func (s *shim) reap() {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			close(s.gone)
			return
		case pid == s.child:
			s.exited <- status
		}
	}
}

// listen turns the server's words into graces; it closes the channel when the line is cut.
func (s *shim) listen() <-chan time.Duration {
	stops := make(chan time.Duration, 1)
	go func() {
		defer close(stops)
		words := bufio.NewScanner(s.line)
		for words.Scan() {
			nanos, err := strconv.ParseInt(strings.TrimPrefix(words.Text(), "stop "), 10, 64)
			if err == nil {
				stops <- time.Duration(nanos)
			}
		}
	}()
	return stops
}

// watch waits for the first reason to end the tree, ends it, and returns the exit status.
func (s *shim) watch(stops <-chan time.Duration, signals <-chan os.Signal) int {
	code := exitSignalShift + int(syscall.SIGKILL)
	var graceOver <-chan time.Time
	stop := func(grace time.Duration) {
		if graceOver == nil {
			graceOver = time.After(grace)
			signalTree(s.child, syscall.SIGTERM)
		}
	}
	for waiting := true; waiting; {
		select {
		case status := <-s.exited:
			code = s.tell(status)
			waiting = graceOver != nil // a graceful stop leaves the others their grace
		case <-s.gone:
			waiting = false
		case grace, open := <-stops:
			if !open {
				waiting = false
				break
			}
			stop(grace)
		case sig := <-signals:
			if sig == syscall.SIGTERM {
				stop(signalGrace)
			}
		case <-graceOver:
			waiting = false
		}
	}
	s.kill()
	select {
	case status := <-s.exited:
		code = s.tell(status)
	default:
	}
	return code
}

// tell reports how the program ended and returns the shim's own exit status.
func (s *shim) tell(status syscall.WaitStatus) int {
	if status.Signaled() {
		code := exitSignalShift + int(status.Signal())
		s.say("exited %d %s\n", code, status.Signal())
		return code
	}
	s.say("exited %d\n", status.ExitStatus())
	return status.ExitStatus()
}

// kill sends SIGKILL to all descendants, again and again, until there are none: one that forks
// while it is being killed only delays it.
func (s *shim) kill() {
	limit := time.After(killLimit)
	for {
		select {
		case <-s.gone:
			if !reaper {
				signalTree(s.child, syscall.SIGKILL) // the group may have members left
			}
			return
		case <-limit:
			return
		default:
		}
		signalTree(s.child, syscall.SIGKILL)
		select {
		case <-s.gone:
		case <-time.After(killPause):
		}
	}
}
