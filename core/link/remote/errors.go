package remote

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// ErrSessionLost means that the server does not know the session any more.
var ErrSessionLost = errors.New("the remote server no longer knows the session")

// Error is why a remote server could not be used. Its message holds no secret, neither headers nor the
// query of the URL, and is safe to show.
type Error struct {
	Host      string
	Reason    string
	Status    int       // the HTTP status, 0 when there was no answer
	Down      bool      // nothing could be reached at the address
	Challenge Challenge // of a server that refuses the credentials
	cause     error     // nil when there is none; its message is in Reason as far as it helps
}

func (e *Error) Error() string { return fmt.Sprintf("remote server %s %s", e.Host, e.Reason) }

// Unwrap returns the cause, nil when there is none.
func (e *Error) Unwrap() error { return e.cause }

var sessionMention = regexp.MustCompile(` ?\(session ID: [^)]*\)`)

// SafeError removes from an error what must not be shown: URLs with their query, and session ids.
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
