package tools

import (
	"encoding/json"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/rawjson"
)

// withUsableSchema compiles a tool's input schema, so that calls find it compiled. A schema that is too
// complex to check is replaced in the tool's description by one that accepts every object, because models
// and clients could not use it either.
func (n *Namespace) withUsableSchema(t core.Tool, raw json.RawMessage) (json.RawMessage, error) {
	if !n.validator.compile(t.Schema).tooComplex {
		return raw, nil
	}
	n.log.Warn("input schema of a tool replaced: it is too complex to check", "server", t.Server, "tool", t.Name)
	return rawjson.Set(raw, rawjson.Member{Name: "inputSchema", Value: json.RawMessage(`{"type":"object"}`)})
}
