package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/core/chat/model"
)

// maxBody limits how many bytes of a response are read.
const maxBody = 64 << 20

// chunk is one event of the stream.
type chunk struct {
	Choices []struct {
		Index        int    `json:"index"`
		Delta        delta  `json:"delta"`
		Message      delta  `json:"message"` // instead of Delta, from some servers
		FinishReason string `json:"finish_reason"`
		Usage        usage  `json:"usage"` // Kimi
	} `json:"choices"`
	Usage usage           `json:"usage"`
	Error json.RawMessage `json:"error"`

	// An error without the member error, from Mistral, Qwen and old vLLM.
	Message json.RawMessage `json:"message"`
	Detail  json.RawMessage `json:"detail"`
}

type usage struct {
	PromptTokens     int64 `json:"prompt_tokens"`
	CompletionTokens int64 `json:"completion_tokens"` // from xAI and Gemini, without the reasoning
	TotalTokens      int64 `json:"total_tokens"`
	Details          struct {
		CachedTokens int64 `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

func (c chunk) isFailure() bool {
	return present(c.Error) || len(c.Choices) == 0 && (present(c.Message) || present(c.Detail))
}

// delta is a piece of the answer. In a response that is not a stream, it is the complete answer.
type delta struct {
	Content   json.RawMessage `json:"content"` // a string, or a list of parts
	Refusal   string          `json:"refusal"`
	ToolCalls []callDelta     `json:"tool_calls"`

	// What must be returned to the server with the message.
	ReasoningContent json.RawMessage `json:"reasoning_content"` // DeepSeek, Qwen
	Reasoning        json.RawMessage `json:"reasoning"`         // vLLM, OpenRouter
	ReasoningDetails json.RawMessage `json:"reasoning_details"` // OpenRouter
	ExtraContent     json.RawMessage `json:"extra_content"`     // Gemini
}

func (d delta) empty() bool {
	return len(d.Content) <= 2 && d.Refusal == "" && len(d.ToolCalls) == 0 && !present(d.ReasoningContent) && !present(d.Reasoning) &&
		!present(d.ReasoningDetails) && !present(d.ExtraContent)
}

// present reports whether a member has a value.
func present(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

type callDelta struct {
	Index    *int64 `json:"index"` // some servers do not number calls
	ID       string `json:"id"`
	Function struct {
		Name      string    `json:"name"`
		Arguments arguments `json:"arguments"`
	} `json:"function"`
	ExtraContent json.RawMessage `json:"extra_content"` // Gemini: to be sent back with the call
}

// arguments is a piece of a call's arguments: JSON text in a string, or, from some servers, an object.
type arguments string

// UnmarshalJSON implements json.Unmarshaler.
func (a *arguments) UnmarshalJSON(raw []byte) error {
	switch {
	case raw[0] == '"' || string(raw) == "null":
		*a = arguments(model.InputOf(raw))
	default:
		*a = arguments(raw)
	}
	return nil
}

// assembly builds an answer from the chunks of a stream.
type assembly struct {
	thought  thought
	parts    []*part
	tools    []*call
	usage    model.Usage
	finish   string
	refused  bool
	complete bool
	text     model.Decoder
	pieces   bool // the server sends pieces; a complete message after them is a repetition
	watch    model.Stopwatch
}

// call is the part of a tool call that has arrived so far.
type call struct {
	block model.Block
	index int64
	extra json.RawMessage
}

// read adds all chunks of a body: an event stream, or the JSON object that some servers return although a
// stream was requested.
func (a *assembly) read(body io.Reader, to model.Pieces) error {
	stream := model.NewEventStream(io.LimitReader(body, maxBody))
	whole, err := stream.Object()
	if err == nil && whole != nil {
		err = a.addJSON(whole, to)
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
		case strings.HasPrefix(string(data), "[DONE]"):
			a.complete = a.complete || a.isWhole() // some gateways send no finish_reason
			return nil
		}
		if err := a.addJSON(data, to); err != nil {
			return err
		}
	}
}

func (a *assembly) addJSON(data []byte, to model.Pieces) error {
	if data[0] == '[' { // Gemini sends a list with one error
		return model.FromEvent(data)
	}
	var c chunk
	err := json.Unmarshal(data, &c)
	if _, differs := errors.AsType[*json.UnmarshalTypeError](err); err != nil && !differs { // ignore fields with an unexpected type
		return fmt.Errorf("an event is not JSON: %w", err)
	}
	if c.isFailure() {
		return model.FromEvent(data)
	}
	a.add(c, to)
	return nil
}

func (a *assembly) add(c chunk, to model.Pieces) {
	a.count(c.Usage)
	for _, choice := range c.Choices {
		if choice.Index != 0 {
			continue
		}
		piece := choice.Delta
		if a.pieces = a.pieces || !piece.empty(); !a.pieces {
			piece = choice.Message
		}
		a.addDelta(piece, to)
		a.count(choice.Usage)
		if choice.FinishReason != "" {
			a.finish, a.complete = choice.FinishReason, true
		}
	}
}

func (a *assembly) count(u usage) {
	if u.PromptTokens > 0 || u.CompletionTokens > 0 {
		cached := min(u.Details.CachedTokens, u.PromptTokens)
		a.usage = model.Usage{Input: u.PromptTokens - cached, Output: max(u.CompletionTokens, u.TotalTokens-u.PromptTokens), CacheRead: cached}
	}
}

// isWhole reports whether an answer without a finish reason has content, and the input of each of its tool calls is
// complete.
func (a *assembly) isWhole() bool {
	cut := func(t *call) bool { return !json.Valid(t.block.Input) }
	return len(a.parts)+len(a.tools) > 0 && !slices.ContainsFunc(a.tools, cut)
}

func (a *assembly) addDelta(d delta, to model.Pieces) {
	if text := a.thought.add(d); text != "" {
		a.watch.Think(to, text)
	}
	a.addContent(d.Content, to)
	if d.Refusal != "" {
		a.refused = true
		a.addText(d.Refusal, to)
	}
	for _, piece := range d.ToolCalls {
		a.endThinking(to)
		if slices.ContainsFunc(a.tools, piece.repeats) {
			continue
		}
		t := a.callOf(piece)
		if t.block.ID == "" {
			t.block.ID = piece.ID
		}
		if piece.Function.Name != t.block.Name { // some servers repeat the name in each piece
			t.block.Name += piece.Function.Name
		}
		if string(t.block.Input) == "{}" && strings.HasPrefix(string(piece.Function.Arguments), "{") { // some gateways send {} first
			t.block.Input = nil
		}
		t.block.Input = append(t.block.Input, piece.Function.Arguments...)
		if present(piece.ExtraContent) {
			t.extra = merge(t.extra, piece.ExtraContent)
		}
	}
}

func (a *assembly) stopThinking(to model.Pieces) {
	if took := a.watch.Stop(to); took > 0 {
		a.thought.took += took
	}
}

// number returns the index of the call. Some servers do not number calls, or number all of them 0.
func (d callDelta) number() int64 {
	if d.Index == nil {
		return 0
	}
	return *d.Index
}

// repeats reports whether a piece repeats a complete call that has already arrived. Some servers send such pieces at
// the end.
func (d callDelta) repeats(t *call) bool {
	return d.ID != "" && d.ID == t.block.ID && d.number() == t.index && d.Function.Name == t.block.Name &&
		string(d.Function.Arguments) == string(t.block.Input) && json.Valid(t.block.Input)
}

// callOf returns the call that a piece belongs to: the call with its id, or else the latest with its index, unless
// the piece starts a new call.
func (a *assembly) callOf(piece callDelta) *call {
	index := piece.number()
	var found *call
	for _, t := range slices.Backward(a.tools) {
		if piece.ID != "" && t.block.ID == piece.ID && t.index == index && !isAnother(t.block, piece) {
			return t
		}
		if found == nil && t.index == index {
			found = t
		}
	}
	if found == nil || isAnother(found.block, piece) {
		found = &call{block: model.Block{Kind: model.ToolUse}, index: index}
		a.tools = append(a.tools, found)
	}
	return found
}

// isAnother reports whether a piece starts a new call although its index is already in use. A new call has a name. The
// id alone is not enough, because some servers use the tool's name, or a new id for each piece.
func isAnother(before model.Block, piece callDelta) bool {
	name := piece.Function.Name
	switch {
	case name == "":
		return false
	case piece.ID != "" && before.ID != "" && piece.ID != before.ID:
		return true
	}
	return json.Valid(before.Input) && (name != before.Name || piece.Function.Arguments != "")
}

// end returns why the answer ended.
func (a *assembly) end() model.End {
	switch strings.ToLower(a.finish) {
	case "", "stop", "eos", "eos_token", "end_turn", "stop_sequence", "complete", "function_call":
		if a.refused {
			return model.EndRefusal
		}
		return model.EndTurn
	case "tool_calls", "tool_use", "tool_call":
		if len(a.tools) == 0 {
			return model.EndNoCalls
		}
		return model.EndTurn
	case "length", "max_tokens":
		return model.EndLength
	case "model_length":
		return model.EndWindow
	case "content_filter", "safety", "prohibited_content":
		return model.EndFilter
	case "refusal":
		return model.EndRefusal
	default:
		return model.EndUnknown
	}
}

// answer returns the answer so far. A tool call with incomplete input is dropped.
func (a *assembly) answer() model.Answer {
	out := model.Answer{Usage: a.usage, End: a.end()}
	if out.End == model.EndUnknown {
		out.Word = a.finish
	}
	whole := a.complete && out.End != model.EndLength && out.End != model.EndWindow
	if b, ok := a.thought.block(); ok {
		out.Blocks = append(out.Blocks, b)
	}
	for _, p := range a.parts {
		out.Blocks = append(out.Blocks, p.block())
	}
	for i, t := range a.tools {
		b := t.block
		if len(b.Input) == 0 && (whole || i < len(a.tools)-1) {
			b.Input = json.RawMessage("{}")
		}
		if !whole && !json.Valid(b.Input) {
			out.CutCall = true
			continue
		}
		if len(t.extra) > 0 {
			b.Raw = t.extra
		}
		out.Blocks = append(out.Blocks, b)
	}
	return out
}
