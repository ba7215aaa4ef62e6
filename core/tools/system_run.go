package tools

import (
	"context"
	"encoding/json"

	"github.com/ropewalk/ropewalk/core"
)

// RunSystem runs one of the server's own tools, by its bare name, for the HTTP API, and returns its
// structured result. The same checks apply as to a call of the tool, and its errors are core.Errors.
func (n *Namespace) RunSystem(ctx context.Context, c core.Caller, name string, arguments json.RawMessage) (json.RawMessage, error) {
	for _, s := range n.system {
		if s.Name != name {
			continue
		}
		if err := n.allowed(s, c); err != nil {
			return nil, err
		}
		if err := n.validator.CheckArguments(ctx, s.tool(), arguments); err != nil {
			return nil, err
		}
		value, err := s.Run(ctx, c, arguments)
		if err != nil {
			return nil, err
		}
		return json.Marshal(value)
	}
	return nil, notFound(name)
}
