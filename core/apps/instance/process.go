package instance

import (
	"context"
	"errors"
	"time"

	"github.com/ropewalk/ropewalk/core/apps/logs"
	"github.com/ropewalk/ropewalk/core/link"
	"github.com/ropewalk/ropewalk/core/process"
)

// exitWait is how long to wait for the exit status of a process after its output has ended.
const exitWait = 3 * time.Second

// Process is an app that runs as a process on this machine. It implements Instance.
type Process struct {
	*link.Link
	*ListChanges
	process *process.Process
	output  *logs.Output
	ownUser bool
}

// watch closes the connection and the log when the process has exited, even if a descendant still has its output open.
func (p *Process) watch() {
	<-p.process.Done()
	_ = p.Close()
	_ = p.output.Close()
}

// Report writes a message about the app's misbehavior to the app's log.
func (p *Process) Report(sentence string) {
	_, _ = p.output.Write([]byte("ropewalk: " + sentence + "\n")) // a full disk must not stop the app
}

// Failure returns how the process exited. A process that closed its output but is still running can no longer be called
// either.
func (p *Process) Failure() *Failure {
	late := time.NewTimer(exitWait)
	defer late.Stop()
	select {
	case <-p.process.Done():
		return NewFailure(exitStatus(p.process), p.output)
	case <-late.C:
		return NewFailure("the process closed its output", p.output)
	}
}

// LimitExceeded returns the sandbox limit that the process exceeded and was killed for; "" for none.
func (p *Process) LimitExceeded() string {
	if exit, ok := errors.AsType[*process.ExitError](p.process.Err()); ok {
		return exit.Limit
	}
	return ""
}

// OwnUser reports whether the process runs under its own user ID.
func (p *Process) OwnUser() bool { return p.ownUser }

// Memory returns how much of the machine's memory the app's processes use, in bytes.
func (p *Process) Memory() int64 { return p.process.Memory() }

// Activity returns what the app's processes have done and which resources they hold. ok is false if the system does not
// report it.
func (p *Process) Activity() (a process.Activity, ok bool) { return p.process.Activity() }

// Shutdown stops the whole process tree (SIGTERM, then SIGKILL after grace) and closes the connection.
func (p *Process) Shutdown(grace time.Duration) error {
	err := p.process.Stop(context.Background(), grace)
	_ = p.Close()
	return err
}

func exitStatus(p *process.Process) string {
	if err := p.Err(); err != nil {
		return "the process " + err.Error()
	}
	return "the process exited with status 0"
}
