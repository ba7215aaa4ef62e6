package pluginhost

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec" // its Cmd is how go-plugin passes the environment on; nothing is executed with it
	"strings"
	"sync"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin/runner"

	"github.com/ropewalk/ropewalk/core/process"
)

// runner is how go-plugin runs a process: under the server's shim, so that it ends with the
// server, whole trees at a time.
type runner struct {
	command process.Command
	name    string
	stderr  *io.PipeReader
	tail    *tail

	mu   sync.Mutex
	proc *process.Process
}

// tailBytes is how much of what a plugin wrote last goes into an error.
const tailBytes = 1 << 10

func newRunner(name string, c process.Command) *runner {
	out, in := io.Pipe()
	last := &tail{}
	c.Stderr = io.MultiWriter(last, in)
	return &runner{command: c, name: name, stderr: out, tail: last}
}

// take is go-plugin's RunnerFunc: it receives the handshake's environment.
func (r *runner) take(_ hclog.Logger, cmd *exec.Cmd, _ string) (goplugin.Runner, error) {
	r.command.Env = append(r.command.Env, cmd.Env...)
	return r, nil
}

// Start starts the process.
func (r *runner) Start(context.Context) error {
	p, err := process.Start(r.command)
	if err != nil {
		_ = r.stderr.Close()
		return err
	}
	_ = p.Stdin().Close() // a plugin reads nothing
	r.mu.Lock()
	r.proc = p
	r.mu.Unlock()
	go func() {
		<-p.Done()
		_ = r.stderr.CloseWithError(io.EOF) // what was written before has been read or never will be
	}()
	return nil
}

func (r *runner) process() *process.Process {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.proc
}

// Wait returns when the whole tree is gone.
func (r *runner) Wait(ctx context.Context) error {
	p := r.process()
	select {
	case <-p.Done():
		return p.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Kill ends the whole tree and returns when it is gone.
func (r *runner) Kill(ctx context.Context) error { return r.process().Stop(ctx, 0) }

func (r *runner) ended() bool {
	p := r.process()
	if p == nil {
		return false
	}
	select {
	case <-p.Done():
		return true
	default:
		return false
	}
}

// how tells how the process ended.
func (r *runner) how() string {
	if err := r.process().Err(); err != nil {
		return err.Error()
	}
	return "exited with status 0"
}

// ID is the process id, "" before the start.
func (r *runner) ID() string {
	if p := r.process(); p != nil {
		return fmt.Sprint(p.PID())
	}
	return ""
}

// Name is for log lines.
func (r *runner) Name() string { return r.name }

// Stdout is where the handshake comes from.
func (r *runner) Stdout() io.ReadCloser { return r.process().Stdout() }

// Stderr is where log lines come from.
func (r *runner) Stderr() io.ReadCloser { return r.stderr }

// Diagnose has nothing to add: the caller puts a failure into words.
func (r *runner) Diagnose(context.Context) string { return "" }

// PluginToHost says that both sides see the same addresses.
func (r *runner) PluginToHost(network, addr string) (string, string, error) {
	return network, addr, nil
}

// HostToPlugin says that both sides see the same addresses.
func (r *runner) HostToPlugin(network, addr string) (string, string, error) {
	return network, addr, nil
}

// tail keeps the last bytes written to it.
type tail struct {
	mu   sync.Mutex
	last []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = append(t.last, p...)
	if over := len(t.last) - tailBytes; over > 0 {
		t.last = append(t.last[:0], t.last[over:]...)
	}
	return len(p), nil
}

// String is the last lines on one, without go-plugin's own chatter.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var lines []string
	for line := range bytes.Lines(t.last) {
		if line = bytes.TrimSpace(line); len(line) > 0 && !bytes.Contains(line, []byte(`"@module":"go-plugin`)) {
			lines = append(lines, string(line))
		}
	}
	return strings.Join(lines, " / ")
}
