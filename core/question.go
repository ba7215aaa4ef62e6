package core

import (
	"encoding/json"
	"time"
)

// Question is what an app asks the person whose run it works for. Only that person may answer it.
type Question struct {
	ID        string // elic_ and 16 hexadecimal digits
	Workspace string
	Owner     string          // User.ID
	Schema    json.RawMessage // of the form; nil when the person is sent to an address
	Until     time.Time       // it counts as declined after that
}
