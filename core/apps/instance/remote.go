package instance

import (
	"time"

	"github.com/ropewalk/ropewalk/core/apps/logs"
	"github.com/ropewalk/ropewalk/core/link"
)

// Remote is an app that runs on a remote server. It implements Instance.
type Remote struct {
	*link.Link
	*ListChanges
	redactor logs.Redactor
}

// Failure returns why the connection was lost.
func (r *Remote) Failure() *Failure {
	if err := r.Err(); err != nil {
		return &Failure{Reason: "the connection was lost: " + r.redactor.Text(err.Error())}
	}
	return &Failure{Reason: "the connection was lost"}
}

// Shutdown closes the connection.
func (r *Remote) Shutdown(time.Duration) error {
	_ = r.Close()
	return nil
}
