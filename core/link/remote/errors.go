package remote

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// ErrSessionLost means that the server no longer knows the session.
var ErrSessionLost = errors.New("the remote server no longer knows the session")

// Error describes why a remote server could not be used. Its message contains no secrets, no headers and no URL
// query, and is safe to show.
type Error struct {
	Host      string
	Reason    string
	Status    int       // the HTTP status, or 0 without a response
	Down      bool      // nothing could be reached at the address
	Challenge Challenge // from a server that rejected the credentials
	cause     error     // may be nil; Reason already includes the useful part of its message
}

func (e *Error) Error() string { return fmt.Sprintf("remote server %s %s", e.Host, e.Reason) }

// Unwrap returns the cause, which may be nil.
func (e *Error) Unwrap() error { return e.cause }

var sessionMention = regexp.MustCompile(` ?\(session ID: [^)]*\)`)

// SafeError removes session ids, and URLs with their query, from an error, because they must not be shown.
func SafeError(err error) error {
	if failed, ok := errors.AsType[*Error](err); ok {
		return failed
	}
	if errors.Is(err, mcp.ErrSessionMissing) {
		return ErrSessionLost
	}
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return failed.Err
	}
	if clean := sessionMention.ReplaceAllString(err.Error(), ""); clean != err.Error() {
		return errors.New(clean)
	}
	return err
}
