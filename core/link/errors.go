package link

import (
	"errors"
)

// The errors of a link. They are wrapped with what happened.
var (
	// ErrClosed means that the connection is gone: the bundle ended, the remote server forgot the
	// session, or Close was called. Whether a call in flight was carried out is unknown.
	ErrClosed = errors.New("the connection to the app is closed")
	// ErrBusy means that too many calls are in flight. Nothing was sent.
	ErrBusy = errors.New("the app has too many calls in flight: try again later")
	// ErrQueueFull means that so much waits for the bundle to read it that a call would have to wait
	// before it is on its way. Nothing was sent.
	ErrQueueFull = errors.New("the app has yet to read what waits for it")
	// ErrTooLarge means that the answer was larger than the limit and was thrown away.
	ErrTooLarge = errors.New("the app's answer is too large")
	// ErrMalformed means that the answer was not a JSON-RPC response.
	ErrMalformed = errors.New("the app's answer is malformed")
	// ErrParams means that params are not a JSON object that can be sent. Nothing was sent.
	ErrParams = errors.New("params must be one JSON object without repeated names")
	// ErrRefused means that the bundle answered the handshake with an error: it may speak another
	// revision.
	ErrRefused = errors.New("the app refused the handshake")
	// ErrBadHandshake means that the bundle answered the handshake with what no client of it can use, such as
	// a revision that is unknown.
	ErrBadHandshake = errors.New("the app's answer to the handshake cannot be used")
	// ErrStalled is why a link closed whose bundle stopped reading.
	ErrStalled = errors.New("the app stopped reading its input")
)
