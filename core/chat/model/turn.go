package model

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"encoding/json"
	"regexp"
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

// Origin identifies a provider's model at an endpoint. The endpoint is hashed, so that nothing secret in it is
// revealed.
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

// ForModel returns the messages as the model with that origin may receive them. It removes the reasoning of other
// models and anything that only their providers understand, and rewrites the ids of their tool calls with SafeID. In
// the result, the first message is a user's, even if an imported conversation begins with the assistant's. No two
// consecutive messages have the same role, and no message is empty.
func ForModel(messages []Message, origin string) []Message {
	foreign := map[string]string{} // foreign tool call ids to safe ids
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
			if (b.Kind == Reasoning || b.Kind == Opaque) && (!own || len(b.Raw) == 0) {
				continue
			}
			if b.Kind == Text && strings.TrimSpace(b.Text) == "" { // Anthropic rejects it
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
		if !slices.ContainsFunc(blocks, hasContent) {
			continue
		}
		if n := len(out); n > 0 && out[n-1].Role == m.Role {
			out[n-1].Blocks = append(out[n-1].Blocks, blocks...)
			continue
		}
		if len(out) == 0 && m.Role != User {
			out = []Message{TextMessage(User, "[The conversation begins with the assistant.]")}
		}
		out = append(out, Message{Role: m.Role, Blocks: blocks})
	}
	return out
}

// hasContent reports whether a message that consists only of b has content.
func hasContent(b Block) bool { return b.Kind != Reasoning }

// SafeID returns an id of nine letters and digits, derived from id. Every provider accepts such an id; Mistral
// accepts no other.
func SafeID(id string) string {
	digest := sha256.Sum256([]byte(id))
	return strings.ToLower(base32.StdEncoding.EncodeToString(digest[:])[:9])
}

// JoinStrings joins two JSON strings without decoding them. Every byte is kept, and a surrogate pair that is split
// between them is rejoined. An argument that is not a string is ignored.
func JoinStrings(a, b json.RawMessage) json.RawMessage {
	if !isString(a) {
		return b
	}
	if !isString(b) {
		return a
	}
	return append(append(append(json.RawMessage{}, a[:len(a)-1]...), b[1:len(b)-1]...), '"')
}

// Decoder decodes the pieces of a text, each of which is a JSON string. A surrogate pair that is split between two pieces is
// rejoined.
type Decoder struct{ half json.RawMessage }

// Add returns the text of the next piece, or "" for anything but a string.
func (d *Decoder) Add(raw json.RawMessage) (text string) {
	if !isString(raw) {
		return ""
	}
	raw, d.half = JoinStrings(d.half, raw), nil
	if at := halfOf(raw); at > 0 {
		d.half = append(json.RawMessage{'"'}, raw[at:]...)
		raw = append(raw[:at:at], '"')
	}
	_ = json.Unmarshal(raw, &text) // it is a string
	return text
}

// InputOf decodes a piece of a call's input, which is JSON text in a JSON string. Half of a surrogate pair at either end
// becomes an escape of the inner text, so that it meets the other half there.
func InputOf(raw json.RawMessage) (text string) {
	if at := halfOf(raw); at > 0 {
		raw = append(append(raw[:at:at], '\\'), raw[at:]...)
	}
	if lowHalf.Match(raw) {
		raw = append(json.RawMessage(`"\`), raw[1:]...)
	}
	_ = json.Unmarshal(raw, &text) // null and other values have no text
	return text
}

var (
	highHalf = regexp.MustCompile(`(?i)(\\+)u(?:d[89ab][0-9a-f]{2})"$`)
	lowHalf  = regexp.MustCompile(`(?i)^"\\ud[c-f][0-9a-f]{2}`)
)

// halfOf returns the position of the first half of a surrogate pair at the end of a JSON string, or 0 if there is none.
func halfOf(raw json.RawMessage) int {
	tail := raw[max(len(raw)-64, 0):]
	if slashes := highHalf.FindSubmatch(tail); slashes != nil && len(slashes[1])%2 == 1 {
		return len(raw) - len(`\ud83d"`)
	}
	return 0
}

func isString(raw json.RawMessage) bool { return len(raw) >= 2 && raw[0] == '"' }

// Stopwatch measures stretches of Reasoning.
type Stopwatch struct{ began time.Time }

// Think passes on a piece of Reasoning and starts a stretch, even if the piece is empty.
func (s *Stopwatch) Think(p Pieces, text string) {
	if s.began.IsZero() {
		s.began = time.Now()
	}
	p.think(text)
}

// Say passes on a piece of text.
func (s *Stopwatch) Say(p Pieces, text string) { p.say(text) }

// Stop ends the current stretch and returns how long it took; 0 if there is none.
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
