package plugins

import (
	"errors"
	"fmt"
)

// The errors that mean something to the server. An implementation returns one of them, plain or
// wrapped with %w; errors.Is finds the same one on the server's side of the wire. Every other
// error arrives as an internal one: logged by the server, shown to nobody.
var (
	ErrNotFound        = errors.New("not found")
	ErrInvalid         = errors.New("invalid argument")
	ErrUnauthenticated = errors.New("unauthenticated")
	ErrUnavailable     = errors.New("unavailable")
	ErrUnimplemented   = errors.New("unimplemented")
)

// Unavailable marks the error of a backend that could not be asked: it is ErrUnavailable and keeps
// its words. nil stays nil.
func Unavailable(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}
