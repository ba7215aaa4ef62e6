package core

import (
	"strings"
	"time"
)

// KeptResult is the text of a tool result that was too long to return to the caller in full. It belongs to the person,
// and to the API key if there was one, that made the call.
type KeptResult struct {
	ID        string
	Workspace string
	User      string
	Key       string // the API key's ID; "" for none
	Tool      string // full name
	MediaType string // application/json or text/plain
	Text      string // the whole text, or the part that was read
	Length    int    // length of the whole text in characters
	ExpiresAt time.Time
}

// keptResults is the prefix of the URI of a kept result.
const keptResults = "ropewalk://system/results/"

// URI returns the URI of the resource that serves the text.
func (r KeptResult) URI() string { return keptResults + r.ID }

// KeptResultID returns the id from the URI of a kept result. ok is false for other URIs.
func KeptResultID(uri string) (id string, ok bool) { return strings.CutPrefix(uri, keptResults) }
