package chat

import (
	"encoding/json"

	"github.com/ropewalk/ropewalk/core"
)

// Event is one event of a run.
type Event struct {
	Name string
	Data any
}

// Emit receives the events of a run. It is called concurrently and must not wait for the run.
type Emit func(Event)

// The names of the events. The names of the events about app questions are in package elicit.
const (
	EventStart        = "chat.start"
	EventText         = "text.delta"
	EventReasoning    = "reasoning.delta"
	EventReasoned     = "reasoning.done"
	EventCompacted    = "chat.compacted"
	EventToolStart    = "tool.start"
	EventToolProgress = "tool.progress"
	EventToolDone     = "tool.done"
	EventDone         = "done"
	EventError        = "error"
)

type runStarted struct {
	ConversationID string `json:"conversationId"`
	RunID          string `json:"runId"`
}

type textDelta struct {
	RunID string `json:"runId"`
	Text  string `json:"text"`
}

// reasoned is the data of EventReasoned: a stretch of reasoning ended.
type reasoned struct {
	RunID string `json:"runId"`
	Ms    int64  `json:"ms"`
}

type toolStart struct {
	RunID       string          `json:"runId"`
	ID          string          `json:"id"`
	Name        string          `json:"name"`
	Input       json.RawMessage `json:"input"`
	ResourceURI string          `json:"resourceUri,omitempty"`
}

type toolProgress struct {
	RunID    string   `json:"runId"`
	ID       string   `json:"id"`
	Progress float64  `json:"progress"`
	Total    *float64 `json:"total,omitempty"`
	Message  string   `json:"message,omitempty"`
}

type toolDone struct {
	RunID       string          `json:"runId"`
	ID          string          `json:"id"`
	Name        string          `json:"name"`
	Account     string          `json:"account,omitempty"`
	OK          bool            `json:"ok"`
	Ms          int64           `json:"ms"`
	Output      string          `json:"output"`
	ResourceURI string          `json:"resourceUri,omitempty"`
	Result      json.RawMessage `json:"result,omitempty"`
}

type runFailed struct {
	Error   core.Code `json:"error"`
	Message string    `json:"message"`
}
