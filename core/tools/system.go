package tools

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/rawjson"
)

// SystemServer is the reserved server name of the server's own tools.
const SystemServer = "system"

// System is one of the server's own tools.
type System struct {
	Name         string // bare, as in system__<name>
	Title        string
	Description  string
	Schema       json.RawMessage
	ReadOnly     bool
	OnSearch     bool // only listed on SurfaceSearch
	ShortResults bool // only listed to clients whose results are shortened to fit (From.ShortResults)
	// ListedSchema returns the schema to list for the current discovery flags; nil means Schema. Calls are always
	// checked against Schema, so that a caller learns which flag is off.
	ListedSchema func(toolDiscovery, bundleDiscovery bool) json.RawMessage
	// Requirement is what a caller needs to call the tool. Callers who do not meet it do not see the tool.
	core.Requirement
	// Shown reports whether the tool is useful to a caller. If not, it is not listed. nil means always.
	Shown func(c core.Caller) bool
	// Permit returns an error if the arguments ask for something that c may not do. It is called before the call is
	// recorded. nil permits everything.
	Permit func(c core.Caller, arguments json.RawMessage) error
	// Run returns the structuredContent, which is also sent as text in the content; a plainText is only sent as
	// content. A core.Error is returned to the caller as a result with isError, so that a model can read what to do.
	// Errors with core.CodeFeatureDisabled, CodeForbidden or CodeRateLimited, and errors of other types, remain
	// errors.
	Run func(ctx context.Context, c core.Caller, arguments json.RawMessage) (any, error)
	// RunFrom is like Run, for a tool that depends on the caller's client. Either Run or RunFrom is nil.
	RunFrom func(ctx context.Context, c core.Caller, from From, arguments json.RawMessage) (any, error)
}

// FullName returns the name under which the tool is listed.
func (s System) FullName() string { return SystemServer + "__" + s.Name }

// isSurface reports whether the tool only helps to use other tools. Views and searches do not apply to such tools.
func (s System) isSurface() bool { return s.OnSearch || s.ShortResults }

// isListed reports whether a list contains the tool, provided its caller may use it.
func (s System) isListed(mask uint64, search bool) bool {
	if s.ShortResults {
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

// admitSystem checks the tool's requirement (docs/api.md 4.2), its schema, and the rights that the arguments require.
func (n *Namespace) admitSystem(ctx context.Context, c core.Caller, s *System, arguments json.RawMessage) error {
	if err := s.Check(c, n.o.Features.Enabled, s.FullName()); err != nil {
		return err
	}
	if err := n.validator.CheckArguments(ctx, s.tool(), arguments); err != nil || s.Permit == nil {
		return err
	}
	return s.Permit(c, arguments)
}

func (s System) run(ctx context.Context, c core.Caller, from From, arguments json.RawMessage) (json.RawMessage, error) {
	run := s.RunFrom
	if run == nil {
		run = func(ctx context.Context, c core.Caller, _ From, arguments json.RawMessage) (any, error) {
			return s.Run(ctx, c, arguments)
		}
	}
	answer, err := run(ctx, c, from, arguments)
	if text, ok := answer.(plainText); ok && err == nil {
		return json.Marshal(map[string]any{"content": []any{map[string]any{"type": "text", "text": string(text)}}, "isError": false})
	}
	if err == nil {
		return result(answer, false)
	}
	known, ok := errors.AsType[*core.Error](err)
	if !ok || known.Code == core.CodeFeatureDisabled || known.Code == core.CodeForbidden || known.Code == core.CodeRateLimited {
		return nil, err // each endpoint has its own form for these
	}
	refusal := map[string]any{"error": known.Code, "message": known.Message}
	if known.Details != nil {
		refusal["details"] = known.Details
	}
	return result(refusal, true)
}

// Arguments decodes the arguments of one of the server's own tools, which were checked against its schema. The error is
// core.CodeBadRequest.
func Arguments(arguments json.RawMessage, into any) error {
	err := json.Unmarshal(arguments, into)
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok { // perhaps 2.0 for an integer
		plain, failed := rawjson.Edit(arguments, func(_ string, value json.RawMessage) (json.RawMessage, error) {
			return rawjson.PlainInteger(value), nil
		})
		if failed == nil {
			err = json.Unmarshal(plain, into)
		}
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return core.Errorf(core.CodeBadRequest, "arguments.%s cannot be %s", wrong.Field, wrong.Value)
	}
	if err != nil {
		return core.Errorf(core.CodeBadRequest, "arguments: %w", err)
	}
	return nil
}

// plainText is a result that models read best as plain text.
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

// Status returns system__status. since is when the server started.
func (n *Namespace) Status(m Manager, version string, since time.Time) System {
	return System{
		Name: "status", Title: "Status", ReadOnly: true,
		Description: "Reports the health of the server and of this workspace's apps.",
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
