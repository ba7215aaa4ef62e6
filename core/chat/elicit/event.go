package elicit

import "encoding/json"

// Emit receives the events of a run. It is called concurrently and must not wait for the run.
type Emit func(name string, data any)

// The names of the events: an app asks the person during a tool call, the question has been answered, and the app has
// completed an interaction at a URL.
const (
	EventRequest  = "elicitation.request"
	EventAnswer   = "elicitation.answer"
	EventComplete = "elicitation.complete"
)

type requestEvent struct {
	RunID         string          `json:"runId"`
	ID            string          `json:"id"`
	ToolCallID    string          `json:"toolCallId"`
	Server        string          `json:"server"`
	Tool          string          `json:"tool"`
	Mode          string          `json:"mode"`
	Message       string          `json:"message"`
	Schema        json.RawMessage `json:"requestedSchema,omitempty"`
	URL           string          `json:"url,omitempty"`
	ElicitationID string          `json:"elicitationId,omitempty"`
	ExpiresAt     string          `json:"expiresAt"`
}

type answerEvent struct {
	RunID  string `json:"runId"`
	ID     string `json:"id"`
	Action string `json:"action"`
	Reason string `json:"reason"`
}

type completeEvent struct {
	RunID         string `json:"runId"`
	ElicitationID string `json:"elicitationId"`
}
