package relyingparty

import (
	"fmt"

	"github.com/ropewalk/ropewalk/plugins"
)

// refuse returns the error for a token that is known to be invalid. The reason is for the server's log.
func refuse(format string, args ...any) error {
	return fmt.Errorf("%w: %w", plugins.ErrUnauthenticated, fmt.Errorf(format, args...))
}

// unavailable returns the error for an adapter that cannot decide.
func unavailable(format string, args ...any) error {
	return fmt.Errorf("%w: %w", plugins.ErrUnavailable, fmt.Errorf(format, args...))
}
