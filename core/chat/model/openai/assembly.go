package openai

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/ropewalk/ropewalk/core/chat/model"
)

// maxBody is how much of one response is read, bytes.
const maxBody = 64 << 20

// chunk is one event of the stream.
type chunk struct {
	Choices []struct {
		Delta        delta  `json:"delta"`
		Message      delta  `json:"message"` // instead of Delta, from some servers
		FinishReason string `json:"finish_reason"`
	} `json:"choices"`
	Usage struct {
		PromptTokens     int64 `json:"prompt_tokens"`
		CompletionTokens int64 `json:"completion_tokens"`
		Details          struct {
			CachedTokens int64 `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	} `json:"usage"`
	Error json.RawMessage `json:"error"`
}

// delta is a piece of the answer; in a response that is no stream it is all of it.
type delta struct {
	Content   string      `json:"content"`
	Refusal   string      `json:"refusal"`
	ToolCalls []callDelta `json:"tool_calls"`
}

func (d delta) text() string { return d.Content + d.Refusal }

func (d delta) empty() bool { return d.text() == "" && len(d.ToolCalls) == 0 }

type callDelta struct {
	Index    int64  `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string    `json:"name"`
		Arguments arguments `json:"arguments"`
	} `json:"function"`
}

// arguments is a part of a call's arguments: JSON text in a string, or, from some servers, an object.
type arguments string

// UnmarshalJSON implements json.Unmarshaler.
func (a *arguments) UnmarshalJSON(raw []byte) error {
	var text string
	switch {
	case json.Unmarshal(raw, &text) == nil: // also null
		*a = arguments(text)
	default:
		*a = arguments(raw)
	}
	return nil
}

// assembly puts an answer together from the chunks of a stream.
type assembly struct {
	text     strings.Builder
	tools    []model.Block
	calls    map[int64]int // the vendor's index of a call to ours
	usage    model.Usage
	finish   string
	complete bool
	pieces   bool // the server sends pieces; a whole message after them says the same again
}

// read adds all chunks of a body: a stream of events, or the JSON object that some servers answer with
// although a stream was asked for.
func (a *assembly) read(body io.Reader, said func(string)) error {
	r := bufio.NewReader(io.LimitReader(body, maxBody))
	if first, _ := r.Peek(1); string(first) == "{" { // an error comes again with the next read
		raw, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		return a.addJSON(raw, said)
	}
	stream := model.NewEventStream(r)
	for {
		data, err := stream.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case strings.HasPrefix(string(data), "[DONE]"):
			return nil
		}
		if err := a.addJSON(data, said); err != nil {
			return err
		}
	}
}

func (a *assembly) addJSON(data []byte, said func(string)) error {
	var c chunk
	err := json.Unmarshal(data, &c)
	if _, differs := errors.AsType[*json.UnmarshalTypeError](err); err != nil && !differs { // a field of another type is ignored
		return fmt.Errorf("an event is not JSON: %w", err)
	}
	if len(c.Error) > 0 && string(c.Error) != "null" {
		return model.FromEvent(data)
	}
	a.add(c, said)
	return nil
}

func (a *assembly) add(c chunk, said func(string)) {
	if u := c.Usage; u.PromptTokens > 0 || u.CompletionTokens > 0 {
		cached := min(u.Details.CachedTokens, u.PromptTokens)
		a.usage = model.Usage{Input: u.PromptTokens - cached, Output: u.CompletionTokens, CacheRead: cached}
	}
	if len(c.Choices) == 0 {
		return
	}
	choice := c.Choices[0]
	piece := choice.Delta
	if a.pieces = a.pieces || !piece.empty(); !a.pieces {
		piece = choice.Message
	}
	if text := piece.text(); text != "" {
		a.text.WriteString(text)
		said(text)
	}
	for _, call := range piece.ToolCalls {
		at, known := a.calls[call.Index]
		if !known || isAnother(a.tools[at], call) {
			at = len(a.tools)
			a.calls[call.Index] = at
			a.tools = append(a.tools, model.Block{Kind: model.ToolUse})
		}
		t := &a.tools[at]
		t.ID = cmp.Or(t.ID, call.ID)
		if call.Function.Name != t.Name { // some servers repeat it with each piece
			t.Name += call.Function.Name
		}
		t.Input = append(t.Input, call.Function.Arguments...)
	}
	if choice.FinishReason != "" {
		a.finish, a.complete = choice.FinishReason, true
	}
}

// isAnother reports whether a chunk begins a call of its own although its index was seen already: some
// servers number no calls, or all of them 0.
func isAnother(before model.Block, call callDelta) bool {
	if call.ID != "" && before.ID != "" {
		return call.ID != before.ID
	}
	name := call.Function.Name
	return name != "" && json.Valid(before.Input) && (name != before.Name || call.Function.Arguments != "")
}

// answer is what has arrived. A tool call whose input is incomplete is left out.
func (a *assembly) answer() model.Answer {
	out := model.Answer{Usage: a.usage, Cut: a.finish == "length"}
	if a.text.Len() > 0 {
		out.Blocks = append(out.Blocks, model.Block{Kind: model.Text, Text: a.text.String()})
	}
	for _, b := range a.tools {
		if len(b.Input) == 0 {
			b.Input = json.RawMessage("{}")
		}
		if (!a.complete || out.Cut) && !json.Valid(b.Input) {
			continue
		}
		out.Blocks = append(out.Blocks, b)
	}
	return out
}
