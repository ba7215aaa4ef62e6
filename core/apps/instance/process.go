package instance

import (
	"context"
	"errors"
	"time"

	"github.com/ropewalk/ropewalk/core/apps/logs"
	"github.com/ropewalk/ropewalk/core/link"
	"github.com/ropewalk/ropewalk/core/process"
)

// exitWait is how long the exit status of a process may come after the end of its output.
const exitWait = 500 * time.Millisecond

// Process is an app that runs as a process of this machine.
type Process struct {
	*link.Link
	*ListChanges
	process *process.Process
	output  *logs.Output
	ownUser bool
}

// watch closes the connection when the process has ended, even if a descendant still holds its
// output. The log is closed then, too: nothing writes to it any more.
func (p *Process) watch() {
	<-p.process.Done()
	_ = p.Close()
	_ = p.output.Close()
}

// Report writes a sentence about what the app did wrong into its log.
func (p *Process) Report(sentence string) {
	_, _ = p.output.Write([]byte("ropewalk: " + sentence + "\n")) // a full disk must not end the app
}

// Failure says how the process ended. A process that has closed its output but runs on cannot be
// called any more.
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

// LimitExceeded is the limit of its sandbox that the process was ended for; "" for none.
func (p *Process) LimitExceeded() string {
	if exit, ok := errors.AsType[*process.ExitError](p.process.Err()); ok {
		return exit.Limit
	}
	return ""
}

// OwnUser reports whether the process has a user id of its own.
func (p *Process) OwnUser() bool { return p.ownUser }

// Memory is what the processes of the app hold of the machine's memory, in bytes.
func (p *Process) Memory() int64 { return p.process.Memory() }

// Activity is what the processes of the app have done and hold; ok is false when the system does not show it.
func (p *Process) Activity() (a process.Activity, ok bool) { return p.process.Activity() }

// Shutdown closes the connection and ends the whole process tree: SIGTERM, then SIGKILL after grace.
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
