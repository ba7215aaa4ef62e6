package tools

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

// SystemServer is the reserved server name of the service's own tools.
const SystemServer = "system"

// System is one of the service's own tools.
type System struct {
	Name        string // bare, as in system__<name>
	Title       string
	Description string
	Schema      json.RawMessage
	ReadOnly    bool
	OnSearch    bool // it is listed on SurfaceSearch only
	ReadsOn     bool // it is listed only for clients whose results are made to fit (From.ReadsOn)
	// ListedSchema returns the schema to list with the discovery flags as they are; calls are checked against
	// Schema, so that a caller learns which flag is off. nil means Schema.
	ListedSchema func(toolDiscovery, bundleDiscovery bool) json.RawMessage
	// Requirement is what a call requires. Callers who do not meet it do not see the tool.
	core.Requirement
	// Shown reports whether a caller has a use for the tool, which is not listed otherwise; nil always.
	Shown func(c core.Caller) bool
	// Permit returns why the arguments ask for what c may not do, before the call is recorded. nil allows all.
	Permit func(c core.Caller, arguments json.RawMessage) error
	// Run returns what becomes structuredContent, and as text the content; a plainText is only content. A core.Error comes back
	// to the caller as a result with isError, so that a model can read what to do. The refusals
	// core.CodeFeatureDisabled and CodeForbidden, and errors of other types, stay errors.
	Run func(ctx context.Context, c core.Caller, arguments json.RawMessage) (any, error)
}

// FullName is the name the tool is listed under.
func (s System) FullName() string { return SystemServer + "__" + s.Name }

// isSurface reports whether the tool serves the use of others. It is no part of what views show and searches find.
func (s System) isSurface() bool { return s.OnSearch || s.ReadsOn }

// isListed reports whether a list has the tool, if its caller may use it.
func (s System) isListed(mask uint64, search bool) bool {
	if s.ReadsOn {
		return mask&maskReadsOn != 0
	}
	return s.OnSearch == search
}

func (s System) tool() core.Tool {
	return core.Tool{Server: SystemServer, Name: s.Name, Schema: s.Schema, ReadOnly: s.ReadOnly}
}

func (s System) listed() Listed {
	t := s.tool()
	t.Raw, _ = json.Marshal(map[string]any{ // strings, bools and valid JSON always marshal
		"name": s.FullName(), "title": s.Title, "description": s.Description, "inputSchema": s.Schema,
		"annotations": map[string]any{"readOnlyHint": s.ReadOnly},
	})
	return Listed{Name: s.FullName(), Tool: t, Raw: t.Raw}
}

// admitSystem applies what the tool requires (docs/api.md 4.6), its schema, and what the arguments require.
func (n *Namespace) admitSystem(ctx context.Context, c core.Caller, s *System, arguments json.RawMessage) error {
	if err := s.Check(c, n.features.Enabled, s.FullName()); err != nil {
		return err
	}
	if err := n.validator.CheckArguments(ctx, s.tool(), arguments); err != nil || s.Permit == nil {
		return err
	}
	return s.Permit(c, arguments)
}

func (s System) run(ctx context.Context, c core.Caller, arguments json.RawMessage) (json.RawMessage, error) {
	answer, err := s.Run(ctx, c, arguments)
	if text, ok := answer.(plainText); ok && err == nil {
		return json.Marshal(map[string]any{"content": []any{map[string]any{"type": "text", "text": string(text)}}, "isError": false})
	}
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

// plainText is an answer that models read best as it is.
type plainText string

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

// Status is system__status. Since is when the server started.
func (n *Namespace) Status(m Manager, version string, since time.Time) System {
	return System{
		Name: "status", Title: "Status", ReadOnly: true,
		Description: "Tells how the server and the apps of this workspace are.",
		Schema:      json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`),
		Run: func(_ context.Context, c core.Caller, _ json.RawMessage) (any, error) {
			states := map[core.State]int{}
			list := m.List(c.Workspace.ID)
			for _, a := range list {
				states[a.Status]++
			}
			return map[string]any{
				"version": version, "uptime": math.Floor(time.Since(since).Seconds()), "workspace": c.Workspace,
				"apps": map[string]any{"total": len(list), "byStatus": states}, "totalTools": len(n.List(c)),
			}, nil
		},
	}
}
