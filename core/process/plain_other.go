//go:build !unix

package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"
)

const openNonblock = 0

// Process is a running program. There is no shim here: its descendants are their own.
type Process struct {
	cmd      *exec.Cmd
	stdin    io.WriteCloser
	stdout   *os.File
	stopping sync.Once
	done     chan struct{}
	err      error
}

// Start runs c.
func Start(c Command) (*Process, error) {
	cmd, _, err := ShimCommandOf(c)
	if err != nil {
		return nil, err
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, theirs, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout = theirs
	err = cmd.Start()
	_ = theirs.Close()
	if err != nil {
		_ = stdout.Close()
		return nil, &StartError{Path: c.Path, Reason: fmt.Sprintf("cannot start %q: %v", c.Path, err)}
	}
	p := &Process{cmd: cmd, stdin: stdin, stdout: stdout, done: make(chan struct{})}
	go p.supervise()
	return p, nil
}

func (p *Process) supervise() {
	defer close(p.done)
	if exit, ok := errors.AsType[*exec.ExitError](p.cmd.Wait()); ok {
		p.err = &ExitError{Code: exit.ExitCode()}
	}
}

// Stdin is the program's standard input.
func (p *Process) Stdin() io.WriteCloser { return p.stdin }

// Stdout is the program's standard output.
func (p *Process) Stdout() io.ReadCloser { return p.stdout }

// PID is the program's process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the program is gone.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err is how the program ended, valid after Done.
func (p *Process) Err() error {
	select {
	case <-p.done:
		return p.err
	default:
		return nil
	}
}

// Stop closes standard input and ends the program after grace, or when ctx ends.
func (p *Process) Stop(ctx context.Context, grace time.Duration) error {
	p.stopping.Do(func() { _ = p.stdin.Close() })
	timer := time.NewTimer(max(grace, 0))
	defer timer.Stop()
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
	case <-timer.C:
	}
	p.Kill()
	<-p.done
	return nil
}

// Kill ends the program at once and does not wait for it.
func (p *Process) Kill() { _ = p.cmd.Process.Kill() }

// ShimMain has nothing to do here.
func ShimMain([]string) int { return 1 }

// ShimCommand is a plain command here; the closer does nothing.
func ShimCommand(path string, args, env []string) (*exec.Cmd, io.Closer, error) {
	return ShimCommandOf(Command{Path: path, Args: args, Env: env})
}

// ShimCommandOf is ShimCommand for a whole Command, Verified included.
func ShimCommandOf(c Command) (*exec.Cmd, io.Closer, error) {
	if c.Verified != nil {
		file, err := c.Verified.open()
		if err != nil {
			return nil, nil, err
		}
		_ = file.Close()
	}
	cmd := exec.Command(c.Path, c.Args...)
	cmd.Env = append(make([]string, 0, len(c.Env)+8), c.Env...)
	cmd.Dir, cmd.Stderr = c.Dir, c.Stderr
	return cmd, io.NopCloser(nil), nil
}

// Self is the path of the running binary.
func Self() string {
	path, err := os.Executable()
	if err != nil {
		return os.Args[0]
	}
	return path
}

// Adopt does nothing here.
func Adopt() {}
