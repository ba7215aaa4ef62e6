package framing

import "errors"

// The errors of messages. They are wrapped with what happened.
var (
	// ErrTooLarge means that an answer was larger than the limit and was discarded.
	ErrTooLarge = errors.New("the app's answer is too large")
	// ErrMalformed means that an answer was not a JSON-RPC response.
	ErrMalformed = errors.New("the app's answer is malformed")
	// ErrParams means that params are not a JSON object that can be sent. Nothing was sent.
	ErrParams = errors.New("params must be one JSON object without repeated names")
)
