package process

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/ropewalk/ropewalk/core/process/cgroup"
	"github.com/ropewalk/ropewalk/core/process/sandbox"
)

// endTimeout is how long Stop waits for a tree that was sent SIGKILL: a process that is stuck in the kernel
// cannot be killed.
const endTimeout = 15 * time.Second

// groupWait is how long a shim may take to end its tree before the kernel kills both, if there is a cgroup.
const groupWait = time.Second

// Process is a running program and all its descendants.
type Process struct {
	cmd    *exec.Cmd
	socket *shimSocket
	group  *cgroup.Group // may be nil
	share  *share        // nil for an unconfined program
	status *bufio.Reader
	denied func(kind, target string, count int) // may be nil
	stdin  *os.File
	stdout *os.File
	pid    int

	over     atomic.Pointer[string] // the limit that the tree exceeded when watchGroup ended it
	stopping sync.Once
	done     chan struct{}
	err      error // set before done is closed
}

// Start runs c through the shim and returns once the program has been executed. If that fails, the error is a
// *StartError. The caller must read Stdout to the end or close it.
func Start(c Command) (_ *Process, err error) {
	p := &Process{denied: c.Denied, done: make(chan struct{})}
	defer func() {
		if err != nil {
			children.release(p.share)
			_ = removeGroup(p.group) // the next start of the server removes what cannot be removed now
		}
	}()
	if info, err := os.Stat(c.Dir); c.Dir != "" && (err != nil || !info.IsDir()) {
		return nil, &StartError{Path: c.Path, Reason: fmt.Sprintf("working directory %q of %q is not a directory", c.Dir, c.Path)}
	}
	if p.group, err = c.Cgroup.make(); err == nil && c.confined() {
		p.share, err = children.grant(c.Sandbox, p.group)
	}
	if err != nil {
		return nil, &StartError{Path: c.Path, Reason: fmt.Sprintf("cannot start %q: %v", c.Path, err), Busy: errors.Is(err, errBusy)}
	}
	if err := p.run(c); err != nil {
		return nil, err
	}
	if err := p.awaitStart(c); err != nil {
		p.release()
		p.reap()
		return nil, err
	}
	if p.group != nil && c.Cgroup.Limits.Processes > 0 {
		go p.watchGroup()
	}
	go p.supervise()
	return p, nil
}

// run starts the shim.
func (p *Process) run(c Command) (err error) {
	if p.cmd, p.socket, err = supervised(c, p.group, p.share); err != nil {
		return err
	}
	p.cmd.Dir, p.cmd.Stderr = c.Dir, c.Stderr
	p.cmd.WaitDelay = time.Second // only a tree whose shim was killed can hold stderr longer
	stdin, toChild, err := os.Pipe()
	if err != nil {
		return errors.Join(err, p.socket.Close())
	}
	fromChild, stdout, err := os.Pipe()
	if err != nil {
		return errors.Join(err, p.socket.Close(), stdin.Close(), toChild.Close())
	}
	p.cmd.Stdin, p.cmd.Stdout, p.stdin, p.stdout, p.status = stdin, stdout, toChild, fromChild, bufio.NewReader(p.socket.server)
	err = children.start(func() (int, error) {
		if err := p.cmd.Start(); err != nil {
			return 0, err
		}
		return p.cmd.Process.Pid, nil
	})
	_, _ = stdin.Close(), stdout.Close()
	p.socket.closeShimSide()
	if p.group != nil {
		p.group.Started()
	}
	if err != nil {
		p.release()
		return &StartError{Path: c.Path, Reason: fmt.Sprintf("cannot start %q: %v", c.Path, err), cause: err}
	}
	return nil
}

// awaitStart reads the shim's first report.
func (p *Process) awaitStart(c Command) error {
	_ = p.socket.server.SetDeadline(time.Now().Add(startTimeout))
	if len(p.socket.profile) > 0 {
		_, _ = p.socket.server.Write(p.socket.profile) // a shim that has already exited is noticed below
	}
	report, err := p.status.ReadString('\n')
	for err == nil && p.noteDenied(report) { // a traced program opens files before it has started
		report, err = p.status.ReadString('\n')
	}
	if err != nil {
		return &StartError{Path: c.Path, Reason: fmt.Sprintf("cannot start %q: its shim ended without a report (%v)", c.Path, err)}
	}
	_ = p.socket.server.SetDeadline(time.Time{})
	if reason, failed := strings.CutPrefix(report, "failed "); failed {
		return &StartError{Path: c.Path, Reason: strings.TrimSpace(reason)}
	}
	pid, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(report, "started ")))
	if err != nil {
		return &StartError{Path: c.Path, Reason: fmt.Sprintf("cannot start %q: its shim reported %q", c.Path, report)}
	}
	p.pid = pid
	if c.Sandbox != nil && c.Sandbox.Level >= sandbox.LevelNamespaces {
		p.pid = childOf(p.cmd.Process.Pid, pid)
	}
	return nil
}

// release closes the descriptors for a program that did not start.
func (p *Process) release() {
	_, _, _ = p.socket.Close(), p.stdin.Close(), p.stdout.Close()
}

// reap waits for the shim to exit.
func (p *Process) reap() {
	_ = p.cmd.Wait()
	children.reaped(p.cmd.Process.Pid)
}

// supervise waits for the shim to exit, which it does after its tree has ended.
func (p *Process) supervise() {
	defer close(p.done)
	defer children.release(p.share)
	var exit *ExitError
	reported, limit := false, ""
	for {
		report, err := p.status.ReadString('\n')
		if err != nil {
			break
		}
		p.noteDenied(report)
		if e, ok := parseExit(report); ok {
			exit, reported = e, true
		}
		if reason, ok := strings.CutPrefix(report, "limit "); ok {
			limit = strings.TrimSpace(reason)
		}
	}
	if p.group != nil && !reported {
		_ = p.group.Kill() // processes that the shim left behind hold its streams, and reap would wait for them
	}
	p.reap()
	_, _ = p.socket.Close(), p.stdin.Close()
	if p.group != nil {
		limit = cmp.Or(limit, p.overGroup(), p.group.Ended())
		_ = p.group.Remove() // the next start of the server removes what cannot be removed now
	}
	if !reported { // the shim itself was killed
		exit = &ExitError{Code: 128 + int(syscall.SIGKILL), Signal: syscall.SIGKILL.String()}
		_ = p.stdout.SetReadDeadline(time.Now().Add(time.Second))
	}
	if !reported || p.shimKilled() {
		sweepOrphans()
	}
	if exit != nil {
		exit.Limit = limit
		p.err = exit
	}
}

// noteDenied passes on a shim's report that the program was denied something or, if it is traced, opened a file. It
// returns false for any other report.
func (p *Process) noteDenied(report string) bool {
	var kind, target string
	var count int
	if _, err := fmt.Sscanf(report, "denied %d %s %q", &count, &kind, &target); err != nil {
		return false
	}
	if p.denied != nil {
		p.denied(kind, target, count)
	}
	return true
}

// parseExit parses the shim's report of how the program exited. nil means status 0.
func parseExit(report string) (exit *ExitError, ok bool) {
	rest, ok := strings.CutPrefix(strings.TrimSpace(report), "exited ")
	if !ok {
		return nil, false
	}
	code, signal, _ := strings.Cut(rest, " ")
	n, err := strconv.Atoi(code)
	if err == nil && (n != 0 || signal != "") {
		exit = &ExitError{Code: n, Signal: signal}
	}
	return exit, err == nil
}

// Stdin returns the program's standard input.
func (p *Process) Stdin() io.WriteCloser { return p.stdin }

// Stdout returns the program's standard output. It ends when no process of the tree is left.
func (p *Process) Stdout() io.ReadCloser { return p.stdout }

// PID returns the program's process id.
func (p *Process) PID() int { return p.pid }

// Memory returns how much memory the program and its descendants use, in bytes: the pages they have written,
// without library code. It is 0 if the system does not expose it.
func (p *Process) Memory() (sum int64) {
	for _, pid := range below(p.cmd.Process.Pid) {
		if u, ok := sandbox.ProcessUsage(pid); ok {
			sum += u.Memory
		}
	}
	return sum
}

// Activity describes a program and its descendants: the processor time that they have used, their processes, and
// whether they hold a connection.
type Activity struct {
	CPUTime   time.Duration // the total of the live processes
	Processes []int         // the ids of the processes
	Connected bool          // one of the processes holds a TCP or UDP socket
}

// Done returns a channel that is closed when the program and all its descendants have ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err returns how the program exited: an *ExitError, or nil for status 0. It is valid after Done.
func (p *Process) Err() error {
	select {
	case <-p.done:
		return p.err
	default:
		return nil
	}
}

// Stop closes standard input and sends SIGTERM to the whole tree. Processes that remain after grace, or when
// ctx ends, get SIGKILL. Stop returns when the whole tree has ended. It is safe to call more than once.
func (p *Process) Stop(ctx context.Context, grace time.Duration) error {
	p.stopping.Do(func() {
		_ = p.stdin.Close()
		_, _ = fmt.Fprintf(p.socket.server, "stop %d\n", max(grace, 0).Nanoseconds())
	})
	limit := time.NewTimer(max(grace, 0) + endTimeout)
	defer limit.Stop()
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		p.Kill()
	case <-limit.C:
		p.Kill()
	}
	limit.Reset(endTimeout)
	stuck := time.NewTimer(groupWait)
	defer stuck.Stop()
	for {
		select {
		case <-p.done:
			return nil
		case <-stuck.C:
			if p.group != nil {
				_ = p.group.Kill() // the shim has not killed the tree, perhaps because the tree stopped the shim
			}
			continue
		case <-limit.C:
		}
		return fmt.Errorf("process %d was sent SIGKILL %v ago and still exists: it is stuck in the kernel", p.pid, endTimeout)
	}
}

// Kill kills the whole tree without waiting for it. Done is closed when it has ended.
func (p *Process) Kill() { _ = p.socket.Close() }

// Self returns the path of the running binary, for Command.Path. It remains valid if the file is replaced or removed
// while the server runs.
func Self() string { return selfPath() }

// shimCommand returns the command that runs a shim with arguments. The descriptor of its program is passed to it, because
// only those that are passed are certain to be the same between fork and exec.
func shimCommand(args ...string) *exec.Cmd {
	line := []string{selfPath(), ShimArg}
	if shimProgram() != nil {
		line = []string{descriptorPath(shimFD, "")}
	}
	line = append(line, args...)
	cmd := exec.Command(line[0], line[1:]...) //nolint:noctx // the socket ends it, with the whole tree; a context would end the shim alone
	cmd.Args[0] = os.Args[0]
	cmd.ExtraFiles = new(shimSocket).extraFiles()
	return cmd
}

// supervised returns the command for the shim that runs c. Closing the server's end of the socket ends the
// shim and the whole tree.
func supervised(c Command, group *cgroup.Group, share *share) (*exec.Cmd, *shimSocket, error) {
	socket, err := newShimSocket(c, group)
	if err != nil {
		return nil, nil, err
	}
	how := byPath
	switch {
	case socket.program != nil:
		how = byDescriptor
	case c.confined():
		how = bySandbox
	}
	if group != nil {
		how += inGroup
	}
	cmd := shimCommand(append([]string{how, c.Path, cmp.Or(c.Name, c.Path)}, c.Args...)...)
	cmd.Env = append(make([]string, 0, len(c.Env)+8), c.Env...) // never nil: nil would inherit
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}       // a Ctrl-C is meant for the server alone
	if group != nil {
		group.Attributes(cmd.SysProcAttr)
	}
	if c.confined() && c.Verified == nil {
		cmd.Env = []string{} // the program's environment is sent with the profile
		if socket.profile, socket.mounts, err = prepareProfile(cmd.SysProcAttr, c, group, share); err != nil {
			return nil, nil, errors.Join(err, socket.Close())
		}
	}
	cmd.ExtraFiles = socket.extraFiles()
	return cmd, socket, nil
}
