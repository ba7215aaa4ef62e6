package openai

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/core/chat/model"
	"github.com/ropewalk/ropewalk/core/rawjson"
)

// returned is the Raw of a Reasoning or Opaque block, to be sent back: members of the message, or a part of its
// content.
type returned struct {
	Message map[string]json.RawMessage `json:"message,omitempty"`
	Part    json.RawMessage            `json:"part,omitempty"`
}

func returnedOf(b model.Block) (r returned) {
	_ = json.Unmarshal(b.Raw, &r) // written by this package
	return r
}

// thought is the reasoning that arrives in members of the message.
type thought struct {
	members map[string]json.RawMessage
	text    strings.Builder
	took    time.Duration
}

// add adds the reasoning in a piece of the answer, and returns the readable part of it.
func (t *thought) add(d delta) (text string) {
	for name, value := range map[string]json.RawMessage{
		"reasoning_content": d.ReasoningContent, "reasoning": d.Reasoning, "reasoning_details": d.ReasoningDetails, "extra_content": d.ExtraContent,
	} {
		if !present(value) {
			continue
		}
		if t.members == nil {
			t.members = map[string]json.RawMessage{}
		}
		t.members[name] = merge(t.members[name], value)
	}
	for _, raw := range []json.RawMessage{d.ReasoningContent, d.Reasoning} {
		if text == "" {
			_ = json.Unmarshal(raw, &text) // only a string is readable
		}
	}
	if text == "" {
		for element := range rawjson.Elements(d.ReasoningDetails) {
			text += detailText(element)
		}
	}
	t.text.WriteString(text)
	return text
}

// detailText returns the readable text of an element of reasoning_details.
func detailText(element json.RawMessage) string {
	var readable struct {
		Text    string `json:"text"`
		Summary string `json:"summary"`
	}
	_ = json.Unmarshal(element, &readable) // ignore members with an unexpected type
	return readable.Text + readable.Summary
}

func (t *thought) block() (model.Block, bool) {
	if len(t.members) == 0 {
		return model.Block{}, false
	}
	raw, err := rawjson.Encode(returned{Message: t.members})
	return model.Block{Kind: model.Reasoning, Text: t.text.String(), Raw: raw, Ms: t.took.Milliseconds()}, err == nil
}

// merge adds a piece of a member to the value so far. Strings are joined, lists continue, and objects have their
// members merged. For anything else, the latest value is used.
func merge(before, next json.RawMessage) json.RawMessage {
	switch {
	case !present(before):
		return append(json.RawMessage{}, next...)
	case !present(next):
		return before
	case before[0] == '"' && next[0] == '"':
		return model.JoinStrings(before, next)
	case before[0] == '[' && next[0] == '[':
		return mergeLists(before, next)
	case before[0] == '{' && next[0] == '{':
		return mergeObjects(before, next, func(string) bool { return false })
	}
	return append(json.RawMessage{}, next...)
}

func mergeObjects(before, next json.RawMessage, joins func(name string) bool) json.RawMessage {
	var changed []rawjson.Member
	old, _ := rawjson.Fields(before)
	members, _ := rawjson.Fields(next)
	for _, name := range slices.Sorted(maps.Keys(members)) {
		value := members[name]
		now := value
		switch was := old[name]; {
		case !present(value) && present(was):
			continue
		case len(was) > 0 && was[0] == '{' && value[0] == '{', joins(name) && present(was):
			now = merge(was, value)
		}
		changed = append(changed, rawjson.Member{Name: name, Value: now})
	}
	out, err := rawjson.Set(before, changed...)
	if err != nil {
		return append(json.RawMessage{}, next...)
	}
	return out
}

// mergeLists adds pieces of a list. A piece with the index of an existing element is merged into that element. A
// piece without an index is merged into the last element if that has the same type.
func mergeLists(before, next json.RawMessage) json.RawMessage {
	var all []json.RawMessage
	for element := range rawjson.Elements(before) {
		all = append(all, element)
	}
	for piece := range rawjson.Elements(next) {
		at := elementOf(all, piece)
		if at < 0 {
			all = append(all, piece)
			continue
		}
		all[at] = mergeObjects(all[at], piece, func(name string) bool {
			return name == "text" || name == "summary" || name == "data" || name == "thinking"
		})
	}
	return rawjson.Array(all)
}

type numbered struct {
	Type  string `json:"type"`
	ID    string `json:"id"`
	Index *int   `json:"index"`
}

func elementOf(all []json.RawMessage, piece json.RawMessage) int {
	var p numbered
	if json.Unmarshal(piece, &p) != nil || p.Type == "" {
		return -1
	}
	for i := len(all) - 1; i >= 0; i-- {
		var before numbered
		_ = json.Unmarshal(all[i], &before) // anything but an object has no type
		same := before.Type == p.Type && (before.ID == p.ID || before.ID == "" || p.ID == "")
		switch {
		case p.Index != nil && before.Index != nil && *p.Index == *before.Index && same:
			return i
		case p.Index == nil && i == len(all)-1 && same:
			return i
		}
	}
	return -1
}

// part is a part of the content: text, or a part that is sent back unchanged.
type part struct {
	kind string // the vendor's
	text strings.Builder
	raw  json.RawMessage
	took time.Duration
}

func (p *part) block() model.Block {
	if p.kind == "text" {
		return model.Block{Kind: model.Text, Text: p.text.String()}
	}
	raw, _ := rawjson.Encode(returned{Part: p.raw}) // p.raw is valid JSON
	b := model.Block{Kind: model.Opaque, Raw: raw}
	if p.kind == "thinking" {
		b.Kind, b.Text, b.Ms = model.Reasoning, p.text.String(), p.took.Milliseconds()
	}
	return b
}

// addContent adds a piece of the content. Parts of unknown types are never treated as text.
func (a *assembly) addContent(raw json.RawMessage, to model.Pieces) {
	if len(raw) == 0 {
		return
	}
	if raw[0] == '"' {
		a.addText(a.text.Add(raw), to)
		return
	}
	if raw[0] != '[' {
		return
	}
	for element := range rawjson.Elements(raw) {
		var p struct {
			Type     string          `json:"type"`
			Text     string          `json:"text"`
			Thinking json.RawMessage `json:"thinking"`
		}
		_ = json.Unmarshal(element, &p) // ignore members with an unexpected type
		switch p.Type {
		case "text":
			a.addText(p.Text, to)
		case "thinking":
			a.addThinking(element, p.Thinking, to)
		default:
			a.stopThinking(to)
			a.parts = append(a.parts, &part{kind: "opaque", raw: append(json.RawMessage{}, element...)})
		}
	}
}

func (a *assembly) addText(text string, to model.Pieces) {
	if text == "" {
		return
	}
	a.endThinking(to)
	p := a.last("text")
	p.text.WriteString(text)
	a.watch.Say(to, text)
}

// addThinking adds a piece of a thinking part. Its text is a string or a list of strings.
func (a *assembly) addThinking(element, inner json.RawMessage, to model.Pieces) {
	p := a.last("thinking")
	if p.raw == nil {
		p.raw = append(json.RawMessage{}, element...)
	} else {
		p.raw = mergeObjects(p.raw, element, func(name string) bool { return name == "thinking" })
	}
	text := ""
	_ = json.Unmarshal(inner, &text) // inner may also be a list
	for one := range rawjson.Elements(inner) {
		text += detailText(one)
	}
	p.text.WriteString(text)
	a.watch.Think(to, text)
}

// endThinking ends a stretch of reasoning, which belongs to a part of the content or to the message.
func (a *assembly) endThinking(to model.Pieces) {
	if n := len(a.parts); n > 0 && a.parts[n-1].kind == "thinking" {
		a.parts[n-1].took += a.watch.Stop(to)
		return
	}
	a.stopThinking(to)
}

// last returns the last part if it has that kind, or else appends a new one.
func (a *assembly) last(kind string) *part {
	if n := len(a.parts); n > 0 && a.parts[n-1].kind == kind {
		return a.parts[n-1]
	}
	p := &part{kind: kind}
	a.parts = append(a.parts, p)
	return p
}
