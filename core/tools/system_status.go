package tools

import (
	"context"
	"encoding/json"
	"math"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

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
