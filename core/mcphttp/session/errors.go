package session

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Why calls are not begun, and sessions not opened.
var (
	ErrEnded        = errors.New("the session has ended")
	ErrTooManyCalls = fmt.Errorf("too many requests of this session are in flight: the limit is %d", maxCalls)
	ErrShutdown     = errors.New("the server is shutting down")
	ErrFull         = errors.New("the limit is reached")
	ErrShare        = fmt.Errorf("the user has too many: %w", ErrFull) // of one user
)

// DuplicateError means that a request with the id is in flight.
type DuplicateError struct{ ID json.RawMessage }

func (e *DuplicateError) Error() string {
	return fmt.Sprintf("a request with id %s is already in flight", e.ID)
}
