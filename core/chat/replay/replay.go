package replay

import (
	"encoding/json"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/chat/model"
)

// Messages returns the stored messages of a conversation as the next model call needs them. No two
// messages in a row have the same role, and every tool call has a result: what a server stored before it
// was killed may have neither property.
func Messages(stored []core.Message) []model.Message {
	var all []model.Message
	for _, m := range stored {
		var turns []model.Message
		if len(m.Blocks) == 0 || json.Unmarshal(m.Blocks, &turns) != nil {
			if m.Content == "" {
				continue
			}
			turns = []model.Message{model.Said(model.Role(m.Role), m.Content)}
		}
		for _, t := range turns {
			all = Append(all, t)
		}
	}
	return addMissingResults(all)
}

// Append appends a message to all, or its blocks to the last message when that has the same role.
func Append(all []model.Message, next model.Message) []model.Message {
	if len(next.Blocks) == 0 {
		return all
	}
	if n := len(all); n > 0 && all[n-1].Role == next.Role {
		all[n-1].Blocks = append(all[n-1].Blocks[:len(all[n-1].Blocks):len(all[n-1].Blocks)], next.Blocks...)
		return all
	}
	return append(all, next)
}

// addMissingResults adds a result to each tool call that has none.
func addMissingResults(all []model.Message) []model.Message {
	var out []model.Message
	for i, m := range all {
		out = Append(out, m)
		if m.Role != model.Assistant {
			continue
		}
		var results []model.Block
		for _, b := range m.Blocks {
			if b.Kind == model.ToolUse && (i+1 == len(all) || !hasResult(all[i+1], b.ID)) {
				results = append(results, model.Block{Kind: model.ToolResult, ID: b.ID, Text: "The run ended before the tool answered.", Error: true})
			}
		}
		out = Append(out, model.Message{Role: model.User, Blocks: results})
	}
	return out
}

func hasResult(m model.Message, id string) bool {
	for _, b := range m.Blocks {
		if b.Kind == model.ToolResult && b.ID == id {
			return true
		}
	}
	return false
}
