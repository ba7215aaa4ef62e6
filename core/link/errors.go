package link

import (
	"errors"

	"github.com/ropewalk/ropewalk/core/link/framing"
	"github.com/ropewalk/ropewalk/core/link/stdio"
)

// The errors of a link. They are wrapped with what happened.
var (
	// ErrClosed means that the connection is closed: the app ended, the remote server no longer knows
	// the session, or Close was called. Whether a call in flight had its effect is unknown.
	ErrClosed = errors.New("the connection to the app is closed")
	// ErrBusy means that too many calls are in flight. Nothing was sent.
	ErrBusy = errors.New("the app has too many calls in flight: try again later")
	// ErrQueueFull means that a call would have to wait until the app has read others. Nothing was sent.
	ErrQueueFull = stdio.ErrQueueFull
	// ErrTooLarge means that an answer was larger than the limit and was discarded.
	ErrTooLarge = framing.ErrTooLarge
	// ErrMalformed means that an answer was not a JSON-RPC response.
	ErrMalformed = framing.ErrMalformed
	// ErrParams means that params are not a JSON object that can be sent. Nothing was sent.
	ErrParams = framing.ErrParams
	// ErrRefused means that the app answered the handshake with an error: it may support another revision.
	ErrRefused = errors.New("the app refused the handshake")
	// ErrBadHandshake means that the app answered the handshake with a result that no client can use, such
	// as an unknown revision.
	ErrBadHandshake = errors.New("the app's answer to the handshake cannot be used")
)
