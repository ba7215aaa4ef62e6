package tools

import (
	"encoding/json"

	"github.com/ropewalk/ropewalk/core/rawjson"
)

// metaOriginalName is the _meta member with the app's own name of a tool or prompt that is listed under a different
// one, because the name was shortened or a view renames it.
const metaOriginalName = "ropewalk/originalName"

// named is a tool or a prompt.
type named interface {
	LongName() string
	OwnName() string
}

// withOriginalName adds the original name to the definition of a tool or prompt that is listed under a different one.
func withOriginalName(of named, listed string, raw json.RawMessage) (json.RawMessage, error) {
	if listed == of.LongName() {
		return raw, nil
	}
	return withMeta(raw, rawjson.Member{Name: metaOriginalName, Value: rawjson.Quote(of.OwnName())})
}

// withMeta sets a member in a JSON object's _meta.
func withMeta(raw json.RawMessage, member rawjson.Member) (json.RawMessage, error) {
	at, err := rawjson.Find(raw, "_meta")
	if err != nil {
		return nil, err
	}
	meta := json.RawMessage("{}")
	if !at.Empty() && raw[at.From] == '{' {
		meta = at.In(raw)
	}
	if meta, err = rawjson.Set(meta, member); err != nil {
		return nil, err
	}
	return rawjson.Set(raw, rawjson.Member{Name: "_meta", Value: meta})
}
