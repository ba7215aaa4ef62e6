package anthropic

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/ropewalk/ropewalk/core/chat/model"
)

// event is one event of the stream; which members it has depends on its type.
type event struct {
	Type    string `json:"type"`
	Message struct {
		Usage usage `json:"usage"`
	} `json:"message"` // of message_start
	ContentBlock struct {
		Type string `json:"type"`
		ID   string `json:"id"`
		Name string `json:"name"`
		Text string `json:"text"`
	} `json:"content_block"` // of content_block_start
	Delta struct {
		Text        string `json:"text"`
		PartialJSON string `json:"partial_json"`
		StopReason  string `json:"stop_reason"`
	} `json:"delta"` // of content_block_delta and message_delta
	Usage usage `json:"usage"` // of message_delta
}

type usage struct {
	Input      int64 `json:"input_tokens"`
	Output     int64 `json:"output_tokens"`
	CacheRead  int64 `json:"cache_read_input_tokens"`
	CacheWrite int64 `json:"cache_creation_input_tokens"`
}

// assembly puts an answer together from the events of a stream.
type assembly struct {
	blocks   []model.Block
	parts    [][]byte // of each block: its text or its input, as far as it has arrived
	usage    model.Usage
	cut      bool
	complete bool
}

// read adds all events of a stream.
func (a *assembly) read(stream *model.EventStream, said func(string)) error {
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
		if _, differs := errors.AsType[*json.UnmarshalTypeError](err); err != nil && !differs { // a member of another type is ignored
			return fmt.Errorf("an event is not JSON: %w", err)
		}
		if e.Type == "error" {
			return model.FromEvent(data)
		}
		a.add(e, said)
	}
}

// add adds one event. Pings, and types that are not known, change nothing.
func (a *assembly) add(e event, said func(string)) {
	switch e.Type {
	case "message_start":
		a.usage = model.Usage(e.Message.Usage)
	case "content_block_start":
		a.begin(e, said)
	case "content_block_delta":
		if i := len(a.blocks) - 1; i >= 0 {
			a.parts[i] = append(append(a.parts[i], e.Delta.Text...), e.Delta.PartialJSON...)
		}
		if e.Delta.Text != "" {
			said(e.Delta.Text)
		}
	case "message_delta":
		a.usage.Output = e.Usage.Output
		a.usage.Input = max(a.usage.Input, e.Usage.Input)
		a.usage.CacheRead = max(a.usage.CacheRead, e.Usage.CacheRead)
		a.usage.CacheWrite = max(a.usage.CacheWrite, e.Usage.CacheWrite)
		a.cut = e.Delta.StopReason == "max_tokens"
	case "message_stop":
		a.complete = true
	}
}

func (a *assembly) begin(e event, said func(string)) {
	block, part := model.Block{Kind: model.Text}, []byte(nil)
	if e.ContentBlock.Type == "tool_use" {
		block = model.Block{Kind: model.ToolUse, ID: e.ContentBlock.ID, Name: e.ContentBlock.Name}
	} else if text := e.ContentBlock.Text; text != "" {
		part = []byte(text)
		said(text)
	}
	a.blocks, a.parts = append(a.blocks, block), append(a.parts, part)
}

// answer is what has arrived. A call of a tool whose input did not arrive whole is left out.
func (a *assembly) answer() model.Answer {
	out := model.Answer{Usage: a.usage, Cut: a.cut}
	for i, b := range a.blocks {
		switch {
		case b.Kind == model.Text && len(a.parts[i]) == 0:
			continue
		case b.Kind == model.Text:
			b.Text = string(a.parts[i])
		case b.Kind == model.ToolUse:
			if b.Input = a.parts[i]; len(b.Input) == 0 {
				b.Input = json.RawMessage("{}")
			}
			if (!a.complete || a.cut) && !json.Valid(b.Input) {
				continue
			}
		}
		out.Blocks = append(out.Blocks, b)
	}
	return out
}
