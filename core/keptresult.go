package core

import (
	"strings"
	"time"
)

// KeptResult is the text of a tool's result that was too long for whoever called. It belongs to the person, and to the API
// key, that the call was made with.
type KeptResult struct {
	ID        string
	Workspace string
	User      string
	Key       string // of the API key; "" for none
	Tool      string // full name
	MediaType string // application/json or text/plain
	Text      string // of a part that was read, that part
	Length    int    // characters of the whole text
	ExpiresAt time.Time
}

// keptResults begins the URI of a kept result.
const keptResults = "ropewalk://system/results/"

// URI is that of the resource.
func (r KeptResult) URI() string { return keptResults + r.ID }

// KeptResultID is the id in the URI of a kept result. ok is false for other URIs.
func KeptResultID(uri string) (id string, ok bool) { return strings.CutPrefix(uri, keptResults) }
