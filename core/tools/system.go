package tools

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/ropewalk/ropewalk/core"
)

// systemServer is the reserved server name of the service's own tools.
const systemServer = "system"

// System is one of the service's own tools.
type System struct {
	Name        string // bare, as in system__<name>
	Title       string
	Description string
	Schema      json.RawMessage
	ReadOnly    bool
	// ListedSchema returns the schema to list with the discovery flags as they are; calls are checked against
	// Schema, so that a caller learns which flag is off. nil means Schema.
	ListedSchema func(toolDiscovery, bundleDiscovery bool) json.RawMessage
	Flags        []string // it is listed while one of these flags is on; without flags, always
	AdminOnly    bool     // needs the organization role admin or owner
	// Run returns what becomes structuredContent, and as text the content. A core.Error comes back
	// to the caller as a result with isError, so that a model can read what to do. The refusals
	// core.CodeFeatureDisabled and CodeForbidden, and errors of other types, stay errors.
	Run func(ctx context.Context, c core.Caller, arguments json.RawMessage) (any, error)
}

// FullName is the name the tool is listed under.
func (s System) FullName() string { return systemServer + "__" + s.Name }

func (s System) tool() core.Tool {
	return core.Tool{Server: systemServer, Name: s.Name, Schema: s.Schema, ReadOnly: s.ReadOnly}
}

func (s System) listed() Listed {
	t := s.tool()
	t.Raw, _ = json.Marshal(map[string]any{ // strings, bools and valid JSON always marshal
		"name": s.FullName(), "title": s.Title, "description": s.Description, "inputSchema": s.Schema,
		"annotations": map[string]any{"readOnlyHint": s.ReadOnly},
	})
	return Listed{Name: s.FullName(), Tool: t, Raw: t.Raw}
}

func (s System) run(ctx context.Context, c core.Caller, arguments json.RawMessage) (json.RawMessage, error) {
	answer, err := s.Run(ctx, c, arguments)
	if err == nil {
		return result(answer, false)
	}
	known, ok := errors.AsType[*core.Error](err)
	if !ok || known.Code == core.CodeFeatureDisabled || known.Code == core.CodeForbidden {
		return nil, err // each endpoint has its own form for these
	}
	refusal := map[string]any{"error": known.Code, "message": known.Message}
	if known.Details != nil {
		refusal["details"] = known.Details
	}
	return result(refusal, true)
}

func result(answer any, isError bool) (json.RawMessage, error) {
	structured, err := json.Marshal(answer)
	if err != nil {
		return nil, err
	}
	return json.Marshal(map[string]any{
		"content":           []any{map[string]any{"type": "text", "text": string(structured)}},
		"structuredContent": json.RawMessage(structured),
		"isError":           isError,
	})
}
