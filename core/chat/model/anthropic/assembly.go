package anthropic

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/ropewalk/ropewalk/core/chat/model"
	"github.com/ropewalk/ropewalk/core/rawjson"
)

// event is one event of the stream. Its type determines which members it has.
type event struct {
	Type    string `json:"type"`
	Index   int    `json:"index"` // the block's index
	Message struct {
		Usage usage `json:"usage"`
	} `json:"message"` // for message_start
	ContentBlock json.RawMessage `json:"content_block"` // for content_block_start
	Delta        struct {
		Type        string          `json:"type"`
		Text        json.RawMessage `json:"text"`
		PartialJSON json.RawMessage `json:"partial_json"`
		Thinking    json.RawMessage `json:"thinking"`
		Signature   json.RawMessage `json:"signature"`
		StopReason  string          `json:"stop_reason"`
	} `json:"delta"` // for content_block_delta and message_delta
	Usage usage `json:"usage"` // for message_delta
}

// start is a block as sent in content_block_start.
type start struct {
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Text      string          `json:"text"`
	Input     json.RawMessage `json:"input"`
	Thinking  json.RawMessage `json:"thinking"`
	Signature json.RawMessage `json:"signature"`
}

type usage struct {
	Input      int64 `json:"input_tokens"`
	Output     int64 `json:"output_tokens"`
	CacheRead  int64 `json:"cache_read_input_tokens"`
	CacheWrite int64 `json:"cache_creation_input_tokens"`
}

// part is the part of a block that has arrived so far.
type part struct {
	index    int
	kind     string // the vendor's
	raw      json.RawMessage
	id, name string
	text     []byte
	decoder  model.Decoder // of text
	input    []byte
	thinking json.RawMessage
	signed   json.RawMessage
	took     time.Duration
}

// assembly builds an answer from the events of a stream.
type assembly struct {
	parts    []*part
	usage    model.Usage
	reason   string
	complete bool
	watch    model.Stopwatch
}

// read adds all events of a stream, or the complete message that some servers send instead.
func (a *assembly) read(stream *model.EventStream, pieces model.Pieces) error {
	whole, err := stream.Object()
	if err == nil && whole != nil {
		err = a.readWhole(whole, pieces)
	}
	if err != nil || whole != nil {
		return err
	}
	for {
		data, err := stream.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		var e event
		err = json.Unmarshal(data, &e)
		if _, differs := errors.AsType[*json.UnmarshalTypeError](err); err != nil && !differs { // ignore members with an unexpected type
			return fmt.Errorf("an event is not JSON: %w", err)
		}
		if e.Type == "error" {
			return model.FromEvent(data)
		}
		a.add(e, pieces)
	}
}

// readWhole adds a complete message.
func (a *assembly) readWhole(raw []byte, pieces model.Pieces) error {
	var m struct {
		Type       string            `json:"type"`
		Content    []json.RawMessage `json:"content"`
		StopReason string            `json:"stop_reason"`
		Usage      usage             `json:"usage"`
	}
	if json.Unmarshal(raw, &m) != nil || m.Type != "message" {
		return model.FromEvent(raw)
	}
	for i, block := range m.Content {
		a.begin(event{Index: i, ContentBlock: block}, pieces)
		a.watch.Stop(pieces)
	}
	a.usage, a.reason, a.complete = model.Usage(m.Usage), m.StopReason, true
	return nil
}

// add adds one event. Pings and unknown types are ignored.
func (a *assembly) add(e event, pieces model.Pieces) {
	switch e.Type {
	case "message_start":
		a.usage = model.Usage(e.Message.Usage)
	case "content_block_start":
		a.begin(e, pieces)
	case "content_block_delta":
		if p := a.part(e.Index); p != nil {
			a.grow(p, e, pieces)
		}
	case "content_block_stop":
		if p := a.part(e.Index); p != nil && p.kind == "thinking" {
			p.took = a.watch.Stop(pieces)
		}
	case "message_delta":
		a.usage.Output = max(a.usage.Output, e.Usage.Output)
		a.usage.Input = max(a.usage.Input, e.Usage.Input)
		a.usage.CacheRead = max(a.usage.CacheRead, e.Usage.CacheRead)
		a.usage.CacheWrite = max(a.usage.CacheWrite, e.Usage.CacheWrite)
		if e.Delta.StopReason != "" {
			a.reason = e.Delta.StopReason
		}
	case "message_stop":
		a.complete = true
	}
}

// part returns the block with that index, or nil if it has not started. If several have the index, the latest is
// returned, because some servers number all blocks 0.
func (a *assembly) part(index int) *part {
	for _, p := range slices.Backward(a.parts) {
		if p.index == index {
			return p
		}
	}
	return nil
}

func (a *assembly) begin(e event, pieces model.Pieces) {
	var s start
	_ = json.Unmarshal(e.ContentBlock, &s) // ignore members with an unexpected type
	p := &part{index: e.Index, kind: s.Type, raw: slices.Clone(e.ContentBlock), id: s.ID, name: s.Name}
	switch s.Type {
	case "text":
		p.text = []byte(s.Text)
		a.watch.Say(pieces, s.Text)
	case "thinking":
		p.thinking, p.signed = s.Thinking, s.Signature
		a.watch.Think(pieces, plain(s.Thinking))
	case "tool_use":
		if len(s.Input) > 2 { // some servers send the complete input here
			p.input = s.Input
		}
	}
	a.parts = append(a.parts, p)
}

// grow adds a delta to its block. A delta that does not belong to the block's kind is ignored.
func (a *assembly) grow(p *part, e event, pieces model.Pieces) {
	switch e.Delta.Type + " of " + p.kind {
	case "text_delta of text":
		text := p.decoder.Add(e.Delta.Text)
		p.text = append(p.text, text...)
		a.watch.Say(pieces, text)
	case "thinking_delta of thinking":
		p.thinking = model.JoinStrings(p.thinking, e.Delta.Thinking)
		a.watch.Think(pieces, plain(e.Delta.Thinking))
	case "signature_delta of thinking":
		p.signed = model.JoinStrings(p.signed, e.Delta.Signature)
	default:
		if e.Delta.Type == "input_json_delta" && p.kind != "text" && p.kind != "thinking" {
			if string(p.input) == "{}" {
				p.input = nil
			}
			p.input = append(p.input, model.InputOf(e.Delta.PartialJSON)...)
		}
	}
}

// plain decodes a JSON string, or returns "" for anything else.
func plain(raw json.RawMessage) (text string) {
	_ = json.Unmarshal(raw, &text)
	return text
}

// end returns why the message ended.
func (a *assembly) end(calls int) model.End {
	switch a.reason {
	case "", "end_turn", "stop_sequence":
		return model.EndTurn
	case "tool_use":
		if calls == 0 {
			return model.EndNoCalls
		}
		return model.EndTurn
	case "max_tokens":
		return model.EndLength
	case "pause_turn":
		return model.EndPause
	case "refusal":
		return model.EndRefusal
	case "model_context_window_exceeded":
		return model.EndWindow
	default:
		return model.EndUnknown
	}
}

// answer returns the answer so far, in the order of the blocks. A tool call with incomplete input is dropped.
func (a *assembly) answer() model.Answer {
	out := model.Answer{Usage: a.usage}
	slices.SortStableFunc(a.parts, func(x, y *part) int { return x.index - y.index })
	whole := a.complete && a.reason != "max_tokens" && a.reason != "model_context_window_exceeded"
	calls := 0
	for i, p := range a.parts {
		b, ok := p.block(whole)
		if p.kind == "tool_use" {
			calls++
			if len(p.input) == 0 && (whole || i < len(a.parts)-1) {
				b.Input = json.RawMessage("{}")
			}
			if cut := !whole && !json.Valid(b.Input); cut {
				out.CutCall = true
				continue
			}
		}
		if ok {
			out.Blocks = append(out.Blocks, b)
		}
	}
	if out.End = a.end(calls); out.End == model.EndUnknown {
		out.Word = a.reason
	}
	return out
}

// block returns the part in the vendor-neutral form. It returns false if the part is empty.
func (p *part) block(whole bool) (model.Block, bool) {
	switch p.kind {
	case "text":
		return model.Block{Kind: model.Text, Text: string(p.text)}, len(p.text) > 0
	case "tool_use":
		return model.Block{Kind: model.ToolUse, ID: p.id, Name: p.name, Input: p.input}, true
	case "thinking":
		b := model.Block{Kind: model.Reasoning, Text: plain(p.thinking), Ms: p.took.Milliseconds()}
		if raw, err := rawjson.Set(p.raw, member("thinking", p.thinking), member("signature", p.signed)); err == nil && (whole || len(p.signed) > 2) {
			b.Raw = raw
		}
		return b, true
	case "redacted_thinking":
		return model.Block{Kind: model.Reasoning, Raw: p.raw}, true
	}
	raw := p.raw
	if len(p.input) > 0 && json.Valid(p.input) {
		raw, _ = rawjson.Set(raw, rawjson.Member{Name: "input", Value: p.input}) // raw is an object: anything else would have no kind
	}
	return model.Block{Kind: model.Opaque, Raw: raw}, p.kind != "" && len(raw) > 0
}

func member(name string, value json.RawMessage) rawjson.Member {
	if len(value) == 0 {
		value = json.RawMessage(`""`)
	}
	return rawjson.Member{Name: name, Value: value}
}
