package plugins

import "errors"

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
