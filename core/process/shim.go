package process

import (
	"bufio"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/ropewalk/ropewalk/core/process/sandbox"
)

// How a shim finds the file to execute.
const (
	byPath       = "path"
	byDescriptor = "fd"
	bySandbox    = "sandbox" // by path, confined
	inGroup      = "+cgroup" // suffix for the others: killFD kills the shim with its tree
)

const (
	exitUsage       = 125
	exitCannotExec  = 126
	signalGrace     = 5 * time.Second // for a shim that receives SIGTERM itself
	killLimit       = 10 * time.Second
	killPause       = 2 * time.Millisecond
	killRounds      = 100
	killAlone       = 50 * time.Millisecond // how long a shim tries to end its tree before it has the kernel kill both
	exitSignalShift = 128
)

// An executable with this package that is run with ShimArg is a shim, if no program for shims was embedded. It does not
// get as far as main.
//
//nolint:gochecknoinits // see above
func init() {
	if len(os.Args) > 1 && os.Args[1] == ShimArg {
		os.Exit(Shim(os.Args[2:]))
	}
}

// Shim runs a shim. args are the arguments after ShimArg, if it is there. The exit status is the program's own, 128+n if
// signal n ended it, or 126 if it could not be executed. It returns only for wrong arguments. Otherwise a shim
// exits directly: it has nothing to clean up, and a binary built with the race detector would take another
// second to exit.
func Shim(args []string) int {
	// A thread that enters the sandbox must not be the first one: a signal to a process is allowed if one to its first
	// thread is.
	runtime.LockOSThread()
	if slices.Equal(args, probeArgs(false)) || slices.Equal(args, probeArgs(true)) {
		return probe(len(args) > 1)
	}
	if len(args) < 3 {
		_, _ = fmt.Fprintln(os.Stderr, "this command is for internal use by the server")
		return exitUsage
	}
	_ = syscall.SetNonblock(socketFD, true) // reading it then needs no thread
	s := &shim{socket: os.NewFile(socketFD, "shim socket"), env: syscall.Environ(), exited: make(chan syscall.WaitStatus, 1), gone: make(chan struct{}), exceeded: make(chan string, 1)}
	s.requests = bufio.NewReader(s.socket)
	closeOnExec()
	becomeReaper()
	signals, ended := make(chan os.Signal, 8), make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT)
	how, grouped := strings.CutSuffix(args[0], inGroup)
	if grouped {
		s.groupKill = os.NewFile(killFD, "cgroup.kill")
	}
	if err := s.begin(how, args[1], args[2:]); err != nil {
		s.report("failed %s\n", err)
		_, _ = fmt.Fprintln(os.Stderr, err)
		syscall.Exit(exitCannotExec)
	}
	s.report("started %d\n", s.child)
	closeStreams()
	go s.reap(ended)
	go s.watchLimits(s.limits, s.exceeded)
	syscall.Exit(s.supervise(s.receiveStops(), signals))
	return exitUsage // not reached
}

// begin starts the program, confined if the server sent a profile. An unconfined program ends with the calling thread,
// because the kernel ties its parent-death signal to the thread that forked it.
func (s *shim) begin(how, path string, argv []string) error {
	if how != bySandbox {
		return s.spawn(how == byDescriptor, path, argv)
	}
	p, err := s.receiveProfile()
	if err != nil {
		return err
	}
	return s.spawnConfined(p, path, argv)
}

// shim is the state of one shim process.
type shim struct {
	socket *os.File
	child  int
	exited chan syscall.WaitStatus
	gone   chan struct{} // closed when no descendant is left

	env      []string         // the program's environment
	profile  *sandbox.Profile // nil for an unconfined program
	requests *bufio.Reader
	limits   sandbox.Limits
	ownIPC   bool        // System V shared memory belongs to the tree alone
	exceeded chan string // the limit that the tree exceeds

	groupKill    *os.File             // kills the cgroup of the tree, including the shim; may be nil
	cloneFlags   uintptr              // needed to start the program
	isInit       bool                 // the first process of its namespace: the kernel kills the others with it
	sandboxKills chan<- chan struct{} // asks the thread in the sandbox to kill everything in it; may be nil
}

func (s *shim) report(format string, args ...any) {
	_, _ = fmt.Fprintf(s.socket, format, args...)
}

// closeStreams leaves the program as the only holder of its streams, so that readers see them end immediately.
func closeStreams() {
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

// reap waits for every descendant that ends as a child of the shim. On Linux all of them do. ended receives
// SIGCHLD: a blocking wait would need a thread.
func (s *shim) reap(ended <-chan os.Signal) {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			close(s.gone)
			return
		case pid == 0:
			<-ended
		case pid == s.child:
			s.exited <- status
		}
	}
}

// receiveStops reads the server's stop requests and sends their grace periods. It closes the channel when the socket
// is closed.
func (s *shim) receiveStops() <-chan time.Duration {
	stops := make(chan time.Duration, 1)
	go func() {
		defer close(stops)
		requests := bufio.NewScanner(s.requests)
		for requests.Scan() {
			text, _ := strings.CutPrefix(requests.Text(), "stop ")
			if n, err := strconv.ParseInt(text, 10, 64); err == nil {
				stops <- time.Duration(n)
			}
		}
	}()
	return stops
}

// supervise waits for the first reason to end the tree, ends it, and returns the exit status.
func (s *shim) supervise(stops <-chan time.Duration, signals <-chan os.Signal) int {
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
			code = s.reportExit(status)
			waiting = graceOver != nil // after a graceful stop, the other processes get their grace period
		case <-s.gone:
			waiting = false
		case reason := <-s.exceeded:
			s.report("limit %s\n", reason)
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
	s.killTree()
	select {
	case status := <-s.exited:
		code = s.reportExit(status)
	default:
	}
	return code
}

// reportExit reports how the program exited and returns the shim's own exit status.
func (s *shim) reportExit(status syscall.WaitStatus) int {
	if status.Signaled() {
		code := exitSignalShift + int(status.Signal())
		s.report("exited %d %s\n", code, status.Signal())
		return code
	}
	s.report("exited %d\n", status.ExitStatus())
	return status.ExitStatus()
}

// killTree sends SIGKILL to all descendants repeatedly until there are none: a process that forks while it is
// being killed only delays the end. A process that forks and exits faster than it can be found in the process
// table is killed by its sandbox or its cgroup. Without either it may outlive the shim.
func (s *shim) killTree() {
	limit, alone := time.After(killLimit), time.After(killAlone)
	for {
		select {
		case <-s.gone:
			if !reaper {
				signalTree(s.child, syscall.SIGKILL) // the group may have members left
			}
			return
		case <-limit:
			return
		case <-alone:
			if s.groupKill != nil {
				_, _ = s.groupKill.WriteString("1")
			}
		default:
		}
		signalTree(s.child, syscall.SIGKILL) // first: see KillsAnywhere
		s.killSandbox()
		for range killRounds {
			if !killOrphans() {
				break
			}
		}
		select {
		case <-s.gone:
		case <-time.After(killPause):
		}
	}
}
