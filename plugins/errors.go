package plugins

import (
	"errors"
	"fmt"
)

// The errors that the server acts on. An implementation returns one of them, plain or wrapped with %w; in the server,
// errors.Is reports the same error. Every other error is internal: the server logs it and does not show its text to a
// client.
var (
	ErrNotFound        = errors.New("not found")
	ErrInvalid         = errors.New("invalid argument")
	ErrUnauthenticated = errors.New("unauthenticated")
	ErrUnavailable     = errors.New("unavailable")
	ErrUnimplemented   = errors.New("unimplemented")
)

// Unavailable wraps the error of a backend that could not be reached, so that errors.Is(err,
// ErrUnavailable) is true. It returns nil for nil.
func Unavailable(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}
