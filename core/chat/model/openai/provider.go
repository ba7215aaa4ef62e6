package openai

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"github.com/ropewalk/ropewalk/core/chat/model"
)

// BaseURL is the vendor's own address.
const BaseURL = "https://api.openai.com/v1"

// Provider is a model.Provider.
type Provider struct {
	completions sdk.ChatCompletionService
	client      *http.Client
	own         bool // it is the vendor's own service
}

// New returns a provider; it connects when it is called.
func New(s model.Settings) *Provider {
	client := model.NewClient(s)
	o := []option.RequestOption{
		option.WithBaseURL(cmp.Or(s.BaseURL, BaseURL) + "/"), option.WithHTTPClient(client), option.WithMaxRetries(0),
	}
	if s.APIKey != "" {
		o = append(o, option.WithAPIKey(s.APIKey))
	}
	return &Provider{completions: sdk.NewChatCompletionService(o...), client: client, own: s.BaseURL == "" || s.BaseURL == BaseURL}
}

// Close ends the connections that no call uses.
func (p *Provider) Close() { p.client.CloseIdleConnections() }

// Call is model.Provider's.
func (p *Provider) Call(ctx context.Context, name string, r model.Request, said func(string)) (model.Answer, error) {
	stream := p.completions.NewStreaming(ctx, p.params(name, r))
	defer func() { _ = stream.Close() }()
	a := assembly{calls: map[int64]int{}}
	for stream.Next() {
		a.add(stream.Current(), said)
	}
	err := stream.Err()
	switch {
	case err != nil:
		return a.answer(), failure(ctx, err)
	case !a.complete:
		return a.answer(), model.FromBreak(ctx, errors.New("the stream ended before the message did"))
	}
	return a.answer(), nil
}

// failure turns the SDK's error into a model.Error.
func failure(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return model.FromBreak(ctx, err)
	}
	if api, ok := errors.AsType[*sdk.Error](err); ok {
		var header http.Header
		if api.Response != nil {
			header = api.Response.Header
		}
		return model.FromStatus(api.StatusCode, header, cmp.Or(api.Code, api.Type), api.Message, err)
	}
	if event, ok := errors.AsType[*ssestream.StreamError](err); ok {
		var body struct {
			Error struct {
				Code    any    `json:"code"` // text or a number, by vendor
				Type    string `json:"type"`
				Message string `json:"message"`
			} `json:"error"`
		}
		_ = json.Unmarshal(event.Event.Data, &body) // what is no JSON has no message
		code, _ := body.Error.Code.(string)
		e := model.FromStatus(0, nil, cmp.Or(code, body.Error.Type), cmp.Or(body.Error.Message, event.Message), err)
		if e.Failure == model.Refused {
			e.Failure = model.Broken // it had begun to answer
		}
		return e
	}
	return model.FromBreak(ctx, err)
}

// assembly puts an answer together from the chunks of a stream.
type assembly struct {
	text     strings.Builder
	tools    []model.Block
	calls    map[int64]int // the vendor's index of a call to ours
	usage    model.Usage
	finish   string
	complete bool
}

func (a *assembly) add(c sdk.ChatCompletionChunk, said func(string)) {
	if u := c.Usage; u.PromptTokens > 0 || u.CompletionTokens > 0 {
		cached := min(u.PromptTokensDetails.CachedTokens, u.PromptTokens)
		a.usage = model.Usage{Input: u.PromptTokens - cached, Output: u.CompletionTokens, CacheRead: cached}
	}
	if len(c.Choices) == 0 {
		return
	}
	choice := c.Choices[0]
	if text := choice.Delta.Content + choice.Delta.Refusal; text != "" {
		a.text.WriteString(text)
		said(text)
	}
	for _, call := range choice.Delta.ToolCalls {
		at, known := a.calls[call.Index]
		if !known || another(a.tools[at], call) {
			at = len(a.tools)
			a.calls[call.Index] = at
			a.tools = append(a.tools, model.Block{Kind: model.ToolUse})
		}
		tool := &a.tools[at]
		tool.ID = cmp.Or(tool.ID, call.ID)
		tool.Name += call.Function.Name
		tool.Input = append(tool.Input, call.Function.Arguments...)
	}
	if choice.FinishReason != "" {
		a.finish, a.complete = choice.FinishReason, true
	}
}

// another reports whether a chunk begins a call of its own though its index was seen already: some
// servers number no calls, or all of them 0.
func another(before model.Block, call sdk.ChatCompletionChunkChoiceDeltaToolCall) bool {
	return call.ID != "" && before.ID != "" && call.ID != before.ID ||
		call.Function.Name != "" && len(before.Input) > 0 && json.Valid(before.Input)
}

// answer is what has arrived. A call of a tool whose input did not arrive whole is left out.
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
