package stdio

import "errors"

// The errors of a connection.
var (
	// ErrClosed means that the connection is closed.
	ErrClosed = errors.New("the connection is closed")
	// ErrQueueFull means that a message would have to wait until the app has read others. Nothing was sent.
	ErrQueueFull = errors.New("the app has not read the messages that wait for it")
	// ErrStalled means that the connection was closed because the app stopped reading.
	ErrStalled = errors.New("the app stopped reading its input")
)
