package pasted

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// within adds to a definition what the object around it says about the server: whether the client uses the server,
// which tools it uses, and the defaults of the inputs that the definition refers to. Clients keep these outside the
// definition.
func within(around map[string]json.RawMessage, name string, definition json.RawMessage) json.RawMessage {
	object := fields(definition)
	if object == nil {
		return definition
	}
	definition = withDefaults(append(list(around["inputs"]), list(object["inputs"])...), definition)
	added := map[string]any{}
	if isOff(around, name) {
		added["disabled"] = true
	}
	include, exclude := toolsAround(around["tools"], name)
	if len(include) > 0 {
		added["tools included around it"] = include
	}
	if len(exclude) > 0 {
		added["tools excluded around it"] = exclude
	}
	if len(added) == 0 {
		return definition
	}
	object = fields(definition)
	for key, value := range added {
		object[key], _ = json.Marshal(value)
	}
	changed, _ := json.Marshal(object)
	return changed
}

// isOff reports whether a client's lists exclude a server: mcp.excluded and mcp.allowed in Gemini CLI, and
// disabledMcpServers in Claude Code.
func isOff(around map[string]json.RawMessage, name string) bool {
	lists := fields(around["mcp"])
	for key, value := range around {
		if lists == nil && strings.HasPrefix(canonical(key), "disabledmcp") {
			lists = map[string]json.RawMessage{"excluded": value}
		}
	}
	has := func(names json.RawMessage) bool {
		return slices.ContainsFunc(list(names), func(one json.RawMessage) bool { return text(one) == name })
	}
	return has(lists["excluded"]) || len(list(lists["allowed"])) > 0 && !has(lists["allowed"])
}

var outsideToolName = regexp.MustCompile(`[^A-Za-z0-9_-]`)

// toolsAround returns the names of a server's tools in the list of all tools: NAME_TOOL with false in opencode, and
// @NAME/TOOL in Amazon Q.
func toolsAround(tools json.RawMessage, name string) (include, exclude []string) {
	for pattern, value := range fields(tools) {
		if on, known := switched(value); on || !known {
			continue
		}
		server := outsideToolName.ReplaceAllString(name, "_")
		if tool, ok := strings.CutPrefix(pattern, server+"_"); ok && tool != "" {
			exclude = append(exclude, tool)
		} else if pattern == "*" || pattern == server+"*" {
			exclude = append(exclude, "*")
		}
	}
	for _, one := range list(tools) {
		if text(one) == "*" || text(one) == "@"+name {
			return nil, exclude
		}
		if tool, ok := strings.CutPrefix(text(one), "@"+name+"/"); ok {
			include = append(include, tool)
		}
	}
	slices.Sort(exclude)
	return include, exclude
}

// maxDefault limits the length in bytes of an input's default, because a definition can refer to it many times.
const maxDefault = 1000

// withDefaults adds the inputs' defaults to the places where a definition refers to them.
func withDefaults(inputs []json.RawMessage, definition json.RawMessage) json.RawMessage {
	for _, one := range inputs {
		input := fields(one)
		id, fallback := text(input["id"]), text(input["default"])
		if id == "" || fallback == "" || len(fallback) > maxDefault || strings.ContainsAny(fallback, "{}") {
			continue
		}
		quoted, _ := json.Marshal(fallback)
		definition = []byte(strings.ReplaceAll(string(definition), "${input:"+id+"}", "${input:"+id+":"+string(quoted[1:len(quoted)-1])+"}"))
	}
	return definition
}
