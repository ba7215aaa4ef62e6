package rpc

import (
	"encoding/json"

	"github.com/ropewalk/ropewalk/core/rawjson"
)

// Notification is one JSON-RPC notification.
type Notification struct {
	Method string
	Params json.RawMessage
	// Callers are those whose calls were in flight when an app sent a log message that names none of
	// them: link.Request.For of each, in the order of the calls. Empty for everything else.
	Callers []any
}

// WithToken is a progress notification (notifications/progress) under another progress token. One that
// has no token stays as it is.
func (n Notification) WithToken(token json.RawMessage) Notification {
	if at, err := rawjson.Find(n.Params, "progressToken"); err == nil && !at.Empty() {
		n.Params = rawjson.Replace(n.Params, at, token)
	}
	return n
}
