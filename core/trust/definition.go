package trust

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/core/rawjson"
)

// Definition returns the canonical form of a tool as its app listed it. If it changes, the tool is treated as a
// different one. Members have a fixed order, and so do the elements of required, enum and type, which are sets.
//
// It includes everything except _meta, where it includes only ui: other metadata is not shown to models, and
// some apps rewrite it at each start. A tool with a duplicate member or a lone surrogate has no definition,
// because two readers could see different tools.
func Definition(raw json.RawMessage) (string, error) {
	if err := rawjson.CheckUnique(raw); err != nil {
		return "", fmt.Errorf("its definition is ambiguous: %w", err)
	}
	if lone := rawjson.LoneSurrogates(raw); len(lone) > 0 {
		return "", fmt.Errorf(`its definition is ambiguous: \u%s is half of a character`, lone[0])
	}
	tool, err := rawjson.Decode(raw)
	if err != nil {
		return "", err
	}
	members, ok := tool.(map[string]any)
	if !ok {
		return "", fmt.Errorf("its definition is not an object")
	}
	meta, _ := members["_meta"].(map[string]any)
	delete(members, "_meta")
	for _, key := range []string{"ui", "ui/resourceUri"} {
		if ui, ok := meta[key]; ok {
			members["_meta."+key] = ui
		}
	}
	sortSets(members)
	return encode(members), nil
}

// encode writes a decoded value with its members sorted.
func encode(value any) string {
	raw, _ := rawjson.Encode(value) // encoding a decoded value cannot fail
	return string(raw)
}

// sortSets sorts the arrays whose order has no meaning, at any depth.
func sortSets(value any) {
	switch value := value.(type) {
	case map[string]any:
		for name, member := range value {
			sortSets(member)
			list, ok := member.([]any)
			if ok && (name == "required" || name == "enum" || name == "type") {
				slices.SortStableFunc(list, func(a, b any) int { return strings.Compare(encode(a), encode(b)) })
			}
		}
	case []any:
		for _, element := range value {
			sortSets(element)
		}
	}
}

// digest identifies a definition. The zero digest means no definition.
type digest [sha256.Size]byte

func digestOf(definition string) digest {
	if definition == "" {
		return digest{}
	}
	return sha256.Sum256([]byte(definition))
}
