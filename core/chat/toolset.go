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
	maxTools   = 100     // tools that a model is offered at a time
	maxSchemas = 300_000 // bytes of their descriptions and schemas if Options.ToolBudget is 0

	searchTool = "system__search"
	readTool   = "system__read_result"
)

// toolset decides which tools the model of a run is offered and may call. It is safe for concurrent use.
type toolset struct {
	source   Tools
	caller   core.Caller
	allowed  allowlist
	disabled []string // the apps that are switched off in the conversation
	server   string   // the app that the person is looking at
	skill    *skill.Skill
	budget   int // bytes of descriptions and schemas

	mu      sync.Mutex
	listed  []tools.Listed // as of the latest turn
	known   []modelTool    // the listed tools that the model may call
	byName  map[string]*modelTool
	wanted  map[string]bool // tools that a search found or that were called before
	reduced bool            // not all of known fit into the budget
}

// modelTool is one tool that the model may call.
type modelTool struct {
	tool  core.Tool
	model model.Tool
}

func (e *Engine) newToolset(source Tools, c core.Caller, a allowlist, disabled []string, server string, picked *skill.Skill, before []core.Message) *toolset {
	s := &toolset{source: source, caller: c, allowed: a, disabled: disabled, server: server, skill: picked, budget: e.toolBytes, wanted: map[string]bool{}}
	for _, m := range before {
		var meta struct {
			ToolCalls []ToolCall `json:"toolCalls"`
		}
		if len(m.Metadata) > 0 && json.Unmarshal(m.Metadata, &meta) == nil {
			for _, c := range meta.ToolCalls {
				s.wanted[c.Name] = true
			}
		}
	}
	return s
}

// follow makes the next turn offer the tools that the caller sees with the given rights.
func (s *toolset) follow(c core.Caller) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.caller = c
}

// tools returns the tools to offer to the model in its next turn.
func (s *toolset) tools() []model.Tool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if listed := s.source.ListFor(s.caller, tools.From{ShortResults: true}); s.byName == nil || !sameTools(listed, s.listed) {
		s.update(listed)
	}
	chosen := s.known
	if s.reduced = !s.fit(); s.reduced {
		chosen = s.choose()
	}
	out := make([]model.Tool, len(chosen))
	for i, t := range chosen {
		out[i] = t.model
	}
	return out
}

// isPartial reports whether some tools were not offered because they did not fit.
func (s *toolset) isPartial() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reduced
}

func (s *toolset) update(listed []tools.Listed) {
	s.listed, s.known, s.byName = listed, nil, map[string]*modelTool{}
	for _, l := range listed {
		d, usable := describe(l)
		if slices.Contains(s.disabled, l.Tool.Server) && l.Name != readTool {
			continue
		}
		if !usable || !s.allowed.allows(l.Name) && l.Name != readTool { // readTool only reads the results of allowed tools
			continue
		}
		s.known = append(s.known, modelTool{tool: l.Tool, model: model.Tool{Name: l.Name, Description: d, Schema: l.Tool.Schema}})
	}
	if len(s.known) == 1 && s.known[0].model.Name == readTool {
		s.known = nil // without other tools there are no results to read
	}
	for i := range s.known {
		t := &s.known[i]
		s.byName[t.tool.FullName()], s.byName[model.SafeName(t.model.Name)] = t, t // a view may have renamed it
	}
	for i := range s.known {
		s.byName[s.known[i].model.Name] = &s.known[i]
	}
}

// resolve returns the full name and the tool for a name that a model used, which may be the form from model.SafeName.
func (s *toolset) resolve(name string) (string, core.Tool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.byName[name]; t != nil {
		return t.model.Name, t.tool
	}
	if t := s.withAccount(name); t != nil {
		return name, t.tool
	}
	return name, core.Tool{}
}

// allows reports whether the model may call a tool.
func (s *toolset) allows(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byName[name] != nil || s.withAccount(name) != nil
}

// withAccount returns the tool for a name that includes an account, or nil for other names.
func (s *toolset) withAccount(name string) *modelTool {
	plain, account := tools.SplitAccount(name)
	if account == "" {
		return nil
	}
	return s.byName[plain]
}

// addSearchResult marks the tools that a search found, so that they are offered from the next turn on.
func (s *toolset) addSearchResult(name string, result json.RawMessage) {
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
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range found.StructuredContent.Tools {
		s.wanted[t.Name] = true
	}
}

// choose returns the most important tools that fit, in listing order: the server's own tools, those of the app that
// the person is looking at, those found or called before, and the skill's. If there is no search tool to find the
// others, as many of them as fit follow in listing order.
func (s *toolset) choose() []modelTool {
	ranks := []func(modelTool) bool{
		func(t modelTool) bool { return t.tool.Server == tools.SystemServer },
		func(t modelTool) bool { return t.tool.Server == s.server },
		func(t modelTool) bool { return s.wanted[t.model.Name] },
		func(t modelTool) bool {
			return s.skill != nil && len(s.skill.AllowedTools) > 0 && matches(s.skill.AllowedTools, t.model.Name)
		},
	}
	if s.byName[searchTool] == nil {
		ranks = append(ranks, func(modelTool) bool { return true })
	}
	in, count, size := make([]bool, len(s.known)), 0, 0
	for _, rank := range ranks {
		for i, t := range s.known {
			if in[i] || !rank(t) || count == maxTools || size+weight(t) > s.budget {
				continue
			}
			in[i], count, size = true, count+1, size+weight(t)
		}
	}
	var chosen []modelTool
	for i, t := range s.known {
		if in[i] {
			chosen = append(chosen, t)
		}
	}
	return chosen
}

func (s *toolset) fit() bool {
	size := 0
	for _, t := range s.known {
		size += weight(t)
	}
	return len(s.known) <= maxTools && size <= s.budget
}

func weight(t modelTool) int { return len(t.model.Description) + len(t.model.Schema) }

func sameTools(a, b []tools.Listed) bool {
	return slices.EqualFunc(a, b, func(x, y tools.Listed) bool { return x.Name == y.Name && bytes.Equal(x.Raw, y.Raw) })
}

// describe returns a tool's description, and whether models may use it: in the MCP Apps extension, a tool can be
// reserved for its app's view.
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
	if json.Unmarshal(l.Raw, &t) != nil { // a member has an unexpected type; the others were decoded
		t.Description = strings.TrimSpace(t.Description)
	}
	seen := slices.Concat(t.Meta.UI.Visibility, t.Meta.Flat)
	if t.Description == "" {
		t.Description = t.Title
	}
	return t.Description, len(seen) == 0 || slices.Contains(seen, "model")
}
