package session

import (
	"encoding/json"

	"github.com/ropewalk/ropewalk/core/mcphttp/sse"
)

// Call is one request in flight.
type Call struct {
	ID     json.RawMessage // as the client wrote it
	Number int64           // unique in its session, from 1
	Out    *sse.Response   // where its answer goes, and what is sent about it before
	Cancel func()          // ends its context
}
