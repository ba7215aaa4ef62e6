package instance

import (
	"strings"

	"github.com/ropewalk/ropewalk/core/apps/logs"
	"github.com/ropewalk/ropewalk/core/link/remote"
)

// Failure says why an instance ended or could not be started. It is an error, and safe to show.
type Failure struct {
	Reason string
	Output []string // the last lines of the process on stderr
	Final  bool     // another attempt would fail for the same reason
	Status int      // the HTTP status with which a remote server refused the handshake; 0 for none
	cause  error    // link.ErrRefused, the core.Error of an account, or nil

	Challenge remote.Challenge // with Status 401 or 403
}

// NewFailure returns a Failure with the last lines that a process wrote to stderr.
func NewFailure(reason string, output *logs.Output) *Failure {
	f := &Failure{Reason: reason}
	if tail := output.Tail(); tail != "" {
		f.Output = strings.Split(tail, "\n")
	}
	return f
}

// Error returns the reason and the last lines of stderr.
func (f *Failure) Error() string {
	if len(f.Output) == 0 {
		return f.Reason
	}
	return f.Reason + "; its last lines on stderr: " + strings.Join(f.Output, "\n")
}

// Unwrap returns link.ErrRefused when the app refused the handshake, or the core.Error of its account.
func (f *Failure) Unwrap() error { return f.cause }
