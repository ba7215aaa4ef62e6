package conversation

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/ropewalk/ropewalk/cmd/ropewalk/cli"
)

// message is a message in a conversation (docs/api.md 6.2).
type message struct {
	Role, Content, Timestamp string
	Metadata                 struct {
		ToolCalls   []toolCall
		Parts       []part
		StopReason  string
		StopMessage string
	}
}

// toolCall is a tool call in a message.
type toolCall struct {
	Name   string
	Input  json.RawMessage
	Output string
	OK     bool
	MS     int64
}

// part locates a piece of text or a tool call in a message.
type part struct {
	Type, Text string
	Index      int
}

// print prints the text parts and tool calls in their original order, and why the answer ended early. If the order is
// unknown, the calls come first, because the last text of an answer follows them.
func (m message) print(o *cli.Output) {
	o.Line("%s", o.Faint(m.Role+", "+m.Timestamp))
	for _, p := range m.parts() {
		switch {
		case p.Type == "text":
			o.Line("%s", p.Text)
		case p.Type == "toolCall" && p.Index >= 0 && p.Index < len(m.Metadata.ToolCalls):
			m.Metadata.ToolCalls[p.Index].print(o)
		}
	}
	if m.Metadata.StopReason != "" {
		end := "✗ " + strings.ReplaceAll(m.Metadata.StopReason, "_", " ")
		if m.Metadata.StopMessage != "" {
			end += ": " + m.Metadata.StopMessage
		}
		o.Line("%s", o.Faint(end))
	}
	o.Line("")
}

// parts returns the text parts and tool calls in order.
func (m message) parts() (parts []part) {
	if len(m.Metadata.Parts) > 0 {
		return m.Metadata.Parts
	}
	for i := range m.Metadata.ToolCalls {
		parts = append(parts, part{Type: "toolCall", Index: i})
	}
	if m.Content != "" {
		parts = append(parts, part{Type: "text", Text: m.Content})
	}
	return parts
}

func (c toolCall) print(o *cli.Output) {
	outcome := fmt.Sprintf("✓ ok, %d ms", c.MS)
	if !c.OK {
		outcome = fmt.Sprintf("✗ failed, %d ms: %s", c.MS, oneLine(c.Output))
	}
	o.Line("%s", o.Faint(fmt.Sprintf("→ %s %s %s", c.Name, oneLine(compact(c.Input)), outcome)))
}

// compact returns a JSON text without spaces, or the text itself if it is not JSON.
func compact(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return string(raw)
	}
	return b.String()
}

// oneLine shortens text to one line of at most 120 characters.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > 120 {
		return string(r[:119]) + "…"
	}
	return text
}
