package model

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

func (p Pieces) say(text string) {
	if p.Text != nil && text != "" {
		p.Text(text)
	}
}

func (p Pieces) think(text string) {
	if p.Thought != nil && text != "" {
		p.Thought(text)
	}
}

// Origin names a model of a provider at an endpoint. It holds nothing secret of the address.
func Origin(full, endpoint string) string {
	digest := sha256.Sum256([]byte(endpoint))
	return full + "@" + hex.EncodeToString(digest[:6])
}

// Sign sets the origin of the blocks of an answer.
func Sign(blocks []Block, origin string) {
	for i := range blocks {
		blocks[i].Origin = origin
	}
}

// ForModel returns messages as the model of that origin may get them. What another model thought, and what only
// its provider understands, is left out. The ids of its tool calls are written as every provider takes them.
// No two messages in a row have the same role, and none is empty.
func ForModel(messages []Message, origin string) []Message {
	foreign := map[string]string{} // ids
	for _, m := range messages {
		for _, b := range m.Blocks {
			if b.Kind == ToolUse && b.Origin != origin && b.Origin != "" {
				foreign[b.ID] = SafeID(b.ID)
			}
		}
	}
	var out []Message
	for _, m := range messages {
		blocks := make([]Block, 0, len(m.Blocks))
		for _, b := range m.Blocks {
			own := b.Origin == origin
			if !own && (b.Kind == Reasoning || b.Kind == Opaque) || (b.Kind == Reasoning || b.Kind == Opaque) && len(b.Raw) == 0 {
				continue
			}
			if !own {
				b.Raw = nil
			}
			if id, ok := foreign[b.ID]; ok && (b.Kind == ToolUse || b.Kind == ToolResult) {
				b.ID = id
			}
			blocks = append(blocks, b)
		}
		if !slices.ContainsFunc(blocks, says) {
			continue
		}
		if n := len(out); n > 0 && out[n-1].Role == m.Role {
			out[n-1].Blocks = append(out[n-1].Blocks, blocks...)
			continue
		}
		out = append(out, Message{Role: m.Role, Blocks: blocks})
	}
	return out
}

// says reports whether a message with that block alone says something.
func says(b Block) bool { return b.Kind != Reasoning }

// SafeID is an id of nine letters and digits, which every provider takes: Mistral takes no other.
func SafeID(id string) string {
	digest := sha256.Sum256([]byte(id))
	return strings.ToLower(base32.StdEncoding.EncodeToString(digest[:])[:9])
}

// JoinStrings joins two JSON strings without decoding them, so that every byte is kept, and half of a character
// at the end of the first is joined with its other half. What is not a string is left out.
func JoinStrings(a, b json.RawMessage) json.RawMessage {
	if !isString(a) {
		return b
	}
	if !isString(b) {
		return a
	}
	return append(append(append(json.RawMessage{}, a[:len(a)-1]...), b[1:len(b)-1]...), '"')
}

func isString(raw json.RawMessage) bool { return len(raw) >= 2 && raw[0] == '"' }

// Stopwatch measures a stretch of Reasoning.
type Stopwatch struct{ began time.Time }

// Think passes a piece of Reasoning on. An empty one begins a stretch, too.
func (s *Stopwatch) Think(p Pieces, text string) {
	if s.began.IsZero() {
		s.began = time.Now()
	}
	p.think(text)
}

// Say passes a piece of text on.
func (s *Stopwatch) Say(p Pieces, text string) { p.say(text) }

// Stop ends a stretch that has begun, and returns how long it took.
func (s *Stopwatch) Stop(p Pieces) time.Duration {
	if s.began.IsZero() {
		return 0
	}
	took := time.Since(s.began)
	s.began = time.Time{}
	if p.Thinking != nil {
		p.Thinking(took)
	}
	return max(took, time.Millisecond)
}
