package rpc

import (
	"encoding/json"
	"fmt"
)

// Error is a JSON-RPC error (JSON-RPC 2.0 part 5.1) that an app or a client answered with. Data is as
// sent.
type Error struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

func (e *Error) Error() string { return fmt.Sprintf("%s (code %d)", e.Message, e.Code) }
