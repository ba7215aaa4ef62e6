package openai

import (
	"strings"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/shared"

	"github.com/ropewalk/ropewalk/core/chat/model"
)

// descriptionLimit is the longest description of a tool that the vendor takes.
const descriptionLimit = 1024

// params writes a request in the vendor's words.
func (p *Provider) params(name string, r model.Request) sdk.ChatCompletionNewParams {
	out := sdk.ChatCompletionNewParams{
		Model:         name,
		StreamOptions: sdk.ChatCompletionStreamOptionsParam{IncludeUsage: sdk.Bool(true)},
	}
	if p.own {
		out.MaxCompletionTokens = sdk.Int(int64(r.MaxTokens))
	} else {
		out.MaxTokens = sdk.Int(int64(r.MaxTokens)) // the name that others know
	}
	if len(r.System) > 0 {
		out.Messages = append(out.Messages, sdk.SystemMessage(strings.Join(r.System, "\n\n")))
	}
	for _, m := range r.Messages {
		out.Messages = append(out.Messages, messages(m)...)
	}
	for _, t := range r.Tools {
		f := shared.FunctionDefinitionParam{Name: model.SafeName(t.Name), Parameters: model.SafeSchema(t.Schema)}
		if t.Description != "" {
			f.Description = sdk.String(strings.ToValidUTF8(t.Description[:min(len(t.Description), descriptionLimit)], ""))
		}
		out.Tools = append(out.Tools, sdk.ChatCompletionFunctionTool(f))
	}
	return out
}

// messages writes one message as the vendor's, who wants one for each tool's answer.
func messages(m model.Message) (out []sdk.ChatCompletionMessageParamUnion) {
	var text []string
	var calls []sdk.ChatCompletionMessageToolCallUnionParam
	for _, b := range m.Blocks {
		switch b.Kind {
		case model.Text:
			text = append(text, b.Text)
		case model.ToolUse:
			calls = append(calls, sdk.ChatCompletionMessageToolCallUnionParam{OfFunction: &sdk.ChatCompletionMessageFunctionToolCallParam{
				ID: b.ID, Function: sdk.ChatCompletionMessageFunctionToolCallFunctionParam{
					Name: model.SafeName(b.Name), Arguments: string(model.Object(b.Input)),
				},
			}})
		case model.ToolResult:
			out = append(out, sdk.ToolMessage(b.Text, b.ID))
		}
	}
	said := strings.Join(text, "\n\n")
	switch {
	case m.Role == model.User && said != "":
		return append(out, sdk.UserMessage(said))
	case m.Role == model.User:
		return out
	}
	assistant := sdk.ChatCompletionAssistantMessageParam{ToolCalls: calls}
	if said != "" {
		assistant.Content.OfString = sdk.String(said)
	}
	return append(out, sdk.ChatCompletionMessageParamUnion{OfAssistant: &assistant})
}
