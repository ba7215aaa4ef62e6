package audit

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/ropewalk/ropewalk/core"
	contract "github.com/ropewalk/ropewalk/plugins/audit"
)

// recordOf converts a record for plugins: to valid UTF-8, without arguments that are too large for a batch.
func recordOf(r core.AuditRecord) contract.Record {
	out := contract.Record{
		Time: r.Time, Actor: valid(r.Actor), Address: valid(r.Address), Workspace: valid(r.Workspace), Action: valid(r.Action),
		Target: valid(r.Target), Outcome: valid(r.Outcome), Reason: valid(r.Reason), RequestID: valid(r.RequestID), TraceID: valid(r.TraceID), Duration: r.Duration,
	}
	if len(r.Arguments) > 0 {
		out.Arguments = json.RawMessage(valid(string(limited(r.Arguments, contract.MaxArguments))))
	}
	return out
}

// limited returns arguments, or a JSON string with their size if they are longer than limit.
func limited(arguments json.RawMessage, limit int) json.RawMessage {
	if len(arguments) > limit {
		return leftOut(len(arguments))
	}
	return arguments
}

// leftOut returns the JSON string that replaces arguments of a size.
func leftOut(size int) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`"left out: %d bytes"`, size))
}

func valid(text string) string { return strings.ToValidUTF8(text, "\ufffd") }

// sizeOf estimates how many bytes a record takes up in a batch.
func sizeOf(r *contract.Record) int {
	return 64 + len(r.Actor) + len(r.Address) + len(r.Workspace) + len(r.Action) + len(r.Target) + len(r.Outcome) + len(r.Reason) + len(r.RequestID) + len(r.TraceID) + len(r.Arguments)
}
