package apps

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/link"
	"github.com/ropewalk/ropewalk/core/process"
	"github.com/ropewalk/ropewalk/core/rpc"
)

// instance is one started app that has answered initialize: a process or a remote connection.
type instance interface {
	Do(ctx context.Context, r link.Request) (json.RawMessage, error)
	Call(ctx context.Context, method string, params json.RawMessage, notify func(rpc.Notification)) (json.RawMessage, error)
	List(ctx context.Context, kind core.Kind) ([]json.RawMessage, error)
	Subscribe(ctx context.Context, uri string) error
	Unsubscribe(ctx context.Context, uri string) error
	Notify(ctx context.Context, method string, params json.RawMessage) error
	Info() link.Info
	Changed() <-chan struct{} // receives after the app said that lists changed
	Take() []core.Kind        // which; each is told once
	Done() <-chan struct{}    // closed when the app cannot be called any more
	Reason() string           // why, after Done; safe to show
	End(grace time.Duration) error
}

// exitPatience is how long the exit status of a process may come after the end of its output.
const exitPatience = 500 * time.Millisecond

// local is an app that is a process of this machine.
type local struct {
	*link.Link
	*news
	process *process.Process
	stderr  *stderr
}

// watch cuts the link of a process that has ended, whoever still holds its output. The log is
// closed when nobody writes to it any more.
func (l *local) watch() {
	<-l.process.Done()
	_ = l.Close()
	_ = l.stderr.Close()
}

// Reason is how the process ended and its last words. A process that runs on without a
// connection has closed its output, which serves nobody: it is ended.
func (l *local) Reason() string {
	late := time.NewTimer(exitPatience)
	defer late.Stop()
	select {
	case <-l.process.Done():
		return lastWords(exit(l.process), l.stderr)
	case <-late.C:
		return lastWords("the process closed its output", l.stderr)
	}
}

// End ends the connection and the whole process tree: SIGTERM, and SIGKILL after grace.
func (l *local) End(grace time.Duration) error {
	err := l.process.Stop(context.Background(), grace)
	_ = l.Close()
	return err
}

func exit(p *process.Process) string {
	if err := p.Err(); err != nil {
		return "the process " + err.Error()
	}
	return "the process exited with status 0"
}

func lastWords(what string, s *stderr) string {
	if last := s.last(); last != "" {
		return fmt.Sprintf("%s; its last lines on stderr: %s", what, last)
	}
	return what
}

// remote is an app that is a server elsewhere.
type remote struct {
	*link.Link
	*news
	redact redactor
}

// Reason is why the connection was lost.
func (r *remote) Reason() string {
	if err := r.Err(); err != nil {
		return "the connection was lost: " + r.redact.text(err.Error())
	}
	return "the connection was lost"
}

// End closes the connection. There is no process to end.
func (r *remote) End(time.Duration) error {
	_ = r.Close()
	return nil
}
