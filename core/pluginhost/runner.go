package pluginhost

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec" // go-plugin passes the environment in its Cmd; nothing is executed with it
	"sync"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin/runner"

	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/process"
)

// runner runs a process for go-plugin: under the server's shim, so that the whole process tree ends with the
// server.
type runner struct {
	command process.Command
	name    string
	stderr  *tail
	sockets string // the directory that go-plugin made for the process's socket

	limits config.PluginLimits

	mu    sync.Mutex
	proc  *process.Process
	limit string // the limit that the plugin exceeded and was stopped for; "" if it exceeded none
}

func newRunner(name string, c process.Command, hidden secrets, limits config.PluginLimits) *runner {
	return &runner{
		command: c, name: name, limits: limits,
		stderr: &tail{ended: make(chan struct{}), secrets: hidden, rate: lineRate{limit: limits.LogLines}, printed: lineRate{limit: limits.LogLines}},
	}
}

// provide is go-plugin's RunnerFunc. It receives the environment for the handshake.
func (r *runner) provide(_ hclog.Logger, cmd *exec.Cmd, sockets string) (goplugin.Runner, error) {
	r.command.Env, r.sockets = append(r.command.Env, cmd.Env...), sockets
	return r, nil
}

// Start starts the process.
func (r *runner) Start(context.Context) error {
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	r.stderr.from, r.stderr.lines, r.command.Stderr = read, bufio.NewReaderSize(read, lineBytes), write
	p, err := process.Start(r.command)
	_ = write.Close() // the process has its own
	if err != nil {
		_, _ = io.Copy(io.Discard, r.stderr)
		_ = os.Remove(r.sockets) // go-plugin does this only after a process that started
		return errors.Join(err, read.Close())
	}
	_ = p.Stdin().Close() // a plugin does not read its standard input
	r.mu.Lock()
	r.proc = p
	r.mu.Unlock()
	go r.watchLimits(r.limits)
	return nil
}

func (r *runner) process() *process.Process {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.proc
}

// Wait returns when the whole process tree has exited.
func (r *runner) Wait(ctx context.Context) error {
	p := r.process()
	select {
	case <-p.Done():
		return p.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Kill stops the whole process tree and returns when it has exited.
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

// overLimit returns the limit that the plugin exceeded and was stopped for, or "".
func (r *runner) overLimit() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.limit
}

// exitReason describes how the process exited.
func (r *runner) exitReason() string {
	if limit := r.overLimit(); limit != "" {
		return "stopped because it " + limit
	}
	if err := r.process().Err(); err != nil {
		return err.Error()
	}
	return "exited with status 0"
}

// ID returns the process ID, or "" before the start.
func (r *runner) ID() string {
	if p := r.process(); p != nil {
		return fmt.Sprint(p.PID())
	}
	return ""
}

// Name returns the name for log messages.
func (r *runner) Name() string { return r.name }

// Stdout returns the stream with the handshake.
func (r *runner) Stdout() io.ReadCloser {
	out := r.process().Stdout()
	if r.stderr.copyTo == nil {
		return out
	}
	return copied{io.TeeReader(out, r.stderr.copyTo), out}
}

// copied copies a stream to another writer.
type copied struct {
	io.Reader
	io.Closer
}

// Stderr returns the stream with the log messages.
func (r *runner) Stderr() io.ReadCloser { return r.stderr }

// Diagnose adds nothing: handshakeError describes failures.
func (r *runner) Diagnose(context.Context) string { return "" }

// PluginToHost returns its arguments: both sides see the same addresses.
func (r *runner) PluginToHost(network, addr string) (string, string, error) {
	return network, addr, nil
}

// HostToPlugin returns its arguments: both sides see the same addresses.
func (r *runner) HostToPlugin(network, addr string) (string, string, error) {
	return network, addr, nil
}
