package anthropic

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/ropewalk/ropewalk/core/chat/model"
)

// BaseURL is the vendor's own address.
const BaseURL = "https://api.anthropic.com"

// Provider is a model.Provider.
type Provider struct {
	messages sdk.MessageService
	client   *http.Client
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
	return &Provider{messages: sdk.NewMessageService(o...), client: client}
}

// Close ends the connections that no call uses.
func (p *Provider) Close() { p.client.CloseIdleConnections() }

// Call is model.Provider's.
func (p *Provider) Call(ctx context.Context, name string, r model.Request, said func(string)) (model.Answer, error) {
	stream := p.messages.NewStreaming(ctx, params(name, r))
	defer func() { _ = stream.Close() }()
	var a assembly
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
	api, ok := errors.AsType[*sdk.Error](err)
	if !ok || ctx.Err() != nil {
		return model.FromBreak(ctx, err)
	}
	var body struct {
		Error struct {
			Type    string `json:"type"`
			Message string `json:"message"`
		} `json:"error"`
	}
	_ = json.Unmarshal([]byte(api.RawJSON()), &body) // a body that is not JSON has no message
	var header http.Header
	if api.Response != nil {
		header = api.Response.Header
	}
	return model.FromStatus(api.StatusCode, header, body.Error.Type, body.Error.Message, err)
}

// assembly puts an answer together from the events of a stream.
type assembly struct {
	blocks   []model.Block
	parts    [][]byte // of each block: its text or its input, as far as it has arrived
	usage    model.Usage
	cut      bool
	complete bool
}

func (a *assembly) add(e sdk.MessageStreamEventUnion, said func(string)) {
	switch e.Type {
	case "message_start":
		u := e.Message.Usage
		a.usage = model.Usage{Input: u.InputTokens, Output: u.OutputTokens, CacheRead: u.CacheReadInputTokens, CacheWrite: u.CacheCreationInputTokens}
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
		a.usage.Output = e.Usage.OutputTokens
		a.usage.Input = max(a.usage.Input, e.Usage.InputTokens)
		a.usage.CacheRead = max(a.usage.CacheRead, e.Usage.CacheReadInputTokens)
		a.usage.CacheWrite = max(a.usage.CacheWrite, e.Usage.CacheCreationInputTokens)
		a.cut = e.Delta.StopReason == sdk.StopReasonMaxTokens
	case "message_stop":
		a.complete = true
	}
}

func (a *assembly) begin(e sdk.MessageStreamEventUnion, said func(string)) {
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
