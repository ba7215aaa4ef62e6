package relyingparty

import (
	"fmt"

	"github.com/ropewalk/ropewalk/plugins"
)

// refuse is "I know it is bad": the reason is for the server's log.
func refuse(format string, args ...any) error {
	return fmt.Errorf("%w: %w", plugins.ErrUnauthenticated, fmt.Errorf(format, args...))
}

// away makes the error of an adapter that cannot decide.
func away(format string, args ...any) error {
	return fmt.Errorf("%w: %w", plugins.ErrUnavailable, fmt.Errorf(format, args...))
}
