package mcphttp

import (
	"bytes"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ropewalk/ropewalk/core"
)

// capabilities are what this endpoint can do for its clients, whatever apps are installed now: one
// that comes later must not need a new session.
func capabilities() *mcp.ServerCapabilities {
	return &mcp.ServerCapabilities{
		Completions: &mcp.CompletionCapabilities{},
		Logging:     &mcp.LoggingCapabilities{}, //nolint:staticcheck // clients of every revision before 2026-07-28 use it
		Prompts:     &mcp.PromptCapabilities{ListChanged: true},
		Resources:   &mcp.ResourceCapabilities{ListChanged: true, Subscribe: true},
		Tools:       &mcp.ToolCapabilities{ListChanged: true},
	}
}

// implementation is who answers.
func (e *Endpoint) implementation() *mcp.Implementation {
	return &mcp.Implementation{Name: "ropewalk", Title: "Ropewalk", Version: e.o.Version}
}

// discover is the result of server/discover: what initialize would have answered.
func (e *Endpoint) discover(caller core.Caller) json.RawMessage {
	return encode(map[string]any{
		"supportedVersions": supported(),
		"capabilities":      capabilities(),
		"instructions":      composeInstructions(e.o.Tools.Instructions(caller)),
	})
}

// encode is a value that always marshals as JSON, without escapes for HTML.
func encode(value any) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(value) // strings, bools and lists of them
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'})
}
