package chat

import (
	"encoding/json"
	"slices"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/chat/model"
)

// storedAsRequest converts the stored messages of a conversation into the messages of the next model call. It merges
// consecutive messages with the same role and adds missing tool results. Both occur when a server is killed during a
// run.
func storedAsRequest(stored []core.Message) []model.Message {
	var all []model.Message
	for _, m := range stored {
		var turns []model.Message
		if len(m.Blocks) == 0 || json.Unmarshal(m.Blocks, &turns) != nil {
			if m.Content == "" {
				continue
			}
			turns = []model.Message{model.TextMessage(model.Role(m.Role), m.Content)}
		}
		addResultFiles(turns, m.Metadata)
		for _, t := range turns {
			if n := len(t.Blocks); n > 0 && t.Role == model.Assistant && t.Blocks[0].Kind == model.Summary {
				all = summarized(t.Blocks[0], all[max(len(all)-t.Blocks[0].Kept, 0):])
				t.Blocks = t.Blocks[1:]
			}
			all = appendMessage(all, t)
		}
	}
	return addMissingResults(all)
}

// appendMessage appends a message, or adds its blocks to the last message if that has the same role.
func appendMessage(all []model.Message, next model.Message) []model.Message {
	if len(next.Blocks) == 0 {
		return all
	}
	if n := len(all); n > 0 && all[n-1].Role == next.Role {
		all[n-1].Blocks = append(all[n-1].Blocks[:len(all[n-1].Blocks):len(all[n-1].Blocks)], next.Blocks...)
		return all
	}
	return append(all, next)
}

// addMissingResults adds an error result to each tool call that has no result.
func addMissingResults(all []model.Message) []model.Message {
	var out []model.Message
	for i, m := range all {
		out = appendMessage(out, m)
		if m.Role != model.Assistant {
			continue
		}
		var results []model.Block
		for _, b := range m.Blocks {
			if b.Kind == model.ToolUse && (i+1 == len(all) || !hasResult(all[i+1], b.ID)) {
				results = append(results, model.Block{Kind: model.ToolResult, ID: b.ID, Text: "The run ended before the tool answered.", Error: true})
			}
		}
		out = appendMessage(out, model.Message{Role: model.User, Blocks: results})
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

// addResultFiles adds the images to the tool results. They are stored with the calls, in the metadata.
func addResultFiles(turns []model.Message, metadata json.RawMessage) {
	var meta struct {
		ToolCalls []ToolCall `json:"toolCalls"`
	}
	if len(metadata) == 0 || json.Unmarshal(metadata, &meta) != nil {
		return
	}
	files := map[string][]model.Block{}
	for _, c := range meta.ToolCalls {
		if images := imagesOfResult(c.Result); len(images) > 0 {
			files[c.ID] = images
		}
	}
	for _, t := range turns {
		for i := range t.Blocks {
			if b := &t.Blocks[i]; b.Kind == model.ToolResult {
				b.Files = files[b.ID]
			}
		}
	}
}

// maxImages is how many images of tool results a model receives: the latest ones.
const maxImages = 20

// withLatestImages returns the messages with only the latest maxImages images in their tool results.
func withLatestImages(messages []model.Message) []model.Message {
	out, left := slices.Clone(messages), maxImages
	for i := len(out) - 1; i >= 0; i-- {
		for j := len(out[i].Blocks) - 1; j >= 0; j-- {
			n := len(out[i].Blocks[j].Files)
			if n <= left {
				left -= n
				continue
			}
			out[i].Blocks = slices.Clone(out[i].Blocks)
			out[i].Blocks[j].Files = out[i].Blocks[j].Files[n-left:]
			left = 0
		}
	}
	return out
}
