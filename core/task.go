package core

import (
	"encoding/json"
	"time"
)

// TaskStatus is the state of a task (MCP extension io.modelcontextprotocol/tasks).
type TaskStatus string

// The states of a task. The last three are final.
const (
	TaskWorking       TaskStatus = "working"
	TaskInputRequired TaskStatus = "input_required"
	TaskCompleted     TaskStatus = "completed"
	TaskFailed        TaskStatus = "failed"
	TaskCancelled     TaskStatus = "cancelled"
)

// Final reports whether a task in this state has ended.
func (s TaskStatus) Final() bool {
	return s == TaskCompleted || s == TaskFailed || s == TaskCancelled
}

// Task is a tool call that outlives its request: the caller has a handle instead of the result. It belongs to the person,
// and to the API key if there was one, that made the call.
type Task struct {
	ID        string
	Workspace string
	User      string
	Key       string // the API key's ID; "" for none
	Tool      string // full name
	Account   string // name of the account with which the app is called; "" for none
	AppTask   string // the app's own id for the task; "" if the call runs on the server that holds the task

	Status  TaskStatus
	Message string          // human-readable; may be ""
	Payload json.RawMessage // the result, the error or the input requests, depending on Status; nil for none

	Holder    string    // the server that makes the call or asks the app about its task
	HeldUntil time.Time // when the holder is considered gone
	CreatedAt time.Time
	UpdatedAt time.Time
	ExpiresAt time.Time
}
