package instance

import (
	"strings"

	"github.com/ropewalk/ropewalk/core/apps/logs"
	"github.com/ropewalk/ropewalk/core/link/remote"
)

// Failure describes why an instance ended or could not be started. It is an error, and safe to show to users.
type Failure struct {
	Reason string
	Output []string // the last lines that the process wrote to stderr
	Final  bool     // another attempt would fail for the same reason
	Busy   bool     // other apps use what it needs; an attempt can succeed once they have ended
	Status int      // the HTTP status with which a remote server rejected the handshake; 0 for none
	cause  error    // link.ErrRefused, the core.Error of an account, or nil

	Challenge remote.Challenge // set with Status 401 or 403
}

// NewFailure returns a Failure with the last lines of output from the process.
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

// Unwrap returns link.ErrRefused if the app refused the handshake, the core.Error of the account, or nil.
func (f *Failure) Unwrap() error { return f.cause }
