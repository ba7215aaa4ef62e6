package chat

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/chat/model"
	"github.com/ropewalk/ropewalk/core/chat/skill"
	"github.com/ropewalk/ropewalk/core/tools"
)

const (
	toolsFit   = 100     // tools that a model is offered at a time
	schemasFit = 300_000 // bytes of their descriptions and schemas

	systemServer = "system"
	searchTool   = "system__search"
)

// offer decides which tools a run's model is offered and may call. The methods may be called
// concurrently.
type offer struct {
	source  Tools
	caller  core.Caller
	allowed allowed
	server  string // the app that the person looks at
	skill   *skill.Skill

	mu      sync.Mutex
	listed  []tools.Listed // as of the latest turn
	known   []offered      // those of listed that may be called
	byName  map[string]*offered
	wanted  map[string]bool // found by a search, or called before
	reduced bool            // not all of known fit
}

// offered is one tool that the model may call.
type offered struct {
	tool  core.Tool
	model model.Tool
}

func newOffer(source Tools, c core.Caller, a allowed, server string, picked *skill.Skill, before []core.Message) *offer {
	o := &offer{source: source, caller: c, allowed: a, server: server, skill: picked, wanted: map[string]bool{}}
	for _, m := range before {
		var meta struct {
			ToolCalls []ToolCall `json:"toolCalls"`
		}
		if len(m.Metadata) > 0 && json.Unmarshal(m.Metadata, &meta) == nil {
			for _, c := range meta.ToolCalls {
				o.wanted[c.Name] = true
			}
		}
	}
	return o
}

// tools are the ones to offer now.
func (o *offer) tools() []model.Tool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if listed := o.source.List(o.caller); o.byName == nil || !sameTools(listed, o.listed) {
		o.take(listed)
	}
	chosen := o.known
	if o.reduced = !fit(o.known); o.reduced {
		chosen = o.choose()
	}
	out := make([]model.Tool, len(chosen))
	for i, t := range chosen {
		out[i] = t.model
	}
	return out
}

// partial reports whether there are more tools than were offered.
func (o *offer) partial() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.reduced
}

func (o *offer) take(listed []tools.Listed) {
	o.listed, o.known, o.byName = listed, nil, map[string]*offered{}
	for _, l := range listed {
		d, usable := describe(l)
		if !usable || !o.allowed.permits(l.Name) {
			continue
		}
		o.known = append(o.known, offered{tool: l.Tool, model: model.Tool{Name: l.Name, Description: d, Schema: l.Tool.Schema}})
	}
	for i := range o.known {
		t := &o.known[i]
		o.byName[t.model.Name], o.byName[model.SafeName(t.model.Name)] = t, t
	}
}

// resolve finds the tool that a model means by a name, which the provider may have made it write
// differently.
func (o *offer) resolve(name string) (string, core.Tool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if t := o.byName[name]; t != nil {
		return t.model.Name, t.tool
	}
	return name, core.Tool{}
}

// permits reports whether the model may call that tool.
func (o *offer) permits(name string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.byName[name] != nil
}

// noticed remembers the tools that a search found, to offer them from the next turn on.
func (o *offer) noticed(name string, result json.RawMessage) {
	if name != searchTool {
		return
	}
	var found struct {
		StructuredContent struct {
			Tools []struct {
				Name string `json:"name"`
			} `json:"tools"`
		} `json:"structuredContent"`
	}
	if json.Unmarshal(result, &found) != nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, t := range found.StructuredContent.Tools {
		o.wanted[t.Name] = true
	}
}

// choose keeps the tools that matter most and still fit, in the order they are listed: the server's
// own, those of the app the person looks at, the skill's, and those found or called before. Without
// a search to find the others, the first of them follow.
func (o *offer) choose() []offered {
	ranks := []func(offered) bool{
		func(t offered) bool { return t.tool.Server == systemServer },
		func(t offered) bool { return t.tool.Server == o.server },
		func(t offered) bool { return o.wanted[t.model.Name] },
		func(t offered) bool {
			return o.skill != nil && len(o.skill.AllowedTools) > 0 && matches(o.skill.AllowedTools, t.model.Name)
		},
	}
	if o.byName[searchTool] == nil {
		ranks = append(ranks, func(offered) bool { return true })
	}
	in, count, size := make([]bool, len(o.known)), 0, 0
	for _, rank := range ranks {
		for i, t := range o.known {
			if in[i] || !rank(t) || count == toolsFit || size+weight(t) > schemasFit {
				continue
			}
			in[i], count, size = true, count+1, size+weight(t)
		}
	}
	var chosen []offered
	for i, t := range o.known {
		if in[i] {
			chosen = append(chosen, t)
		}
	}
	return chosen
}

func fit(all []offered) bool {
	size := 0
	for _, t := range all {
		size += weight(t)
	}
	return len(all) <= toolsFit && size <= schemasFit
}

func weight(t offered) int { return len(t.model.Description) + len(t.model.Schema) }

func sameTools(a, b []tools.Listed) bool {
	return slices.EqualFunc(a, b, func(x, y tools.Listed) bool { return x.Name == y.Name && bytes.Equal(x.Raw, y.Raw) })
}

// describe is a tool's description, and whether it is for models at all: the MCP Apps extension
// lets a tool say that it is for its app's view only.
func describe(l tools.Listed) (description string, forModels bool) {
	var t struct {
		Title       string `json:"title"`
		Description string `json:"description"`
		Meta        struct {
			UI struct {
				Visibility []string `json:"visibility"`
			} `json:"ui"`
			Flat []string `json:"ui/visibility"`
		} `json:"_meta"`
	}
	if json.Unmarshal(l.Raw, &t) != nil { // a member of an unexpected type: what could be read counts
		t.Description = strings.TrimSpace(t.Description)
	}
	seen := slices.Concat(t.Meta.UI.Visibility, t.Meta.Flat)
	if t.Description == "" {
		t.Description = t.Title
	}
	return t.Description, len(seen) == 0 || slices.Contains(seen, "model")
}
