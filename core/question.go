package core

import (
	"encoding/json"
	"time"
)

// Question is an elicitation: an app asks the user whose run called it. Only that user may answer.
type Question struct {
	ID        string // elic_ and 16 hexadecimal digits
	Workspace string
	Owner     string          // User.ID
	Schema    json.RawMessage // of the form; nil when the person is sent to an address
	Until     time.Time       // it counts as declined after that
}
