package anthropic

import (
	"encoding/base64"

	sdk "github.com/anthropics/anthropic-sdk-go"

	"github.com/ropewalk/ropewalk/core/chat/model"
)

// params writes a request in the vendor's words.
func params(name string, r model.Request) sdk.MessageNewParams {
	p := sdk.MessageNewParams{Model: name, MaxTokens: int64(r.MaxTokens)}
	for _, part := range r.System {
		p.System = append(p.System, sdk.TextBlockParam{Text: part})
	}
	for _, t := range r.Tools {
		p.Tools = append(p.Tools, tool(t))
	}
	for _, m := range r.Messages {
		message := sdk.MessageParam{Role: sdk.MessageParamRole(m.Role)}
		for _, b := range m.Blocks {
			message.Content = append(message.Content, block(b))
		}
		p.Messages = append(p.Messages, message)
	}
	cache(&p)
	return p
}

func tool(t model.Tool) sdk.ToolUnionParam {
	out := sdk.ToolParam{Name: model.SafeName(t.Name), InputSchema: sdk.ToolInputSchemaParam{ExtraFields: map[string]any{}}}
	if t.Description != "" {
		out.Description = sdk.String(t.Description)
	}
	for key, value := range model.SafeSchema(t.Schema) {
		switch key {
		case "type":
		case "properties":
			out.InputSchema.Properties = value
		default:
			out.InputSchema.ExtraFields[key] = value
		}
	}
	return sdk.ToolUnionParam{OfTool: &out}
}

func block(b model.Block) sdk.ContentBlockParamUnion {
	switch b.Kind {
	case model.ToolUse:
		return sdk.NewToolUseBlock(b.ID, model.Object(b.Input), model.SafeName(b.Name))
	case model.File:
		return fileBlock(b)
	case model.ToolResult:
		return sdk.NewToolResultBlock(b.ID, b.Text, b.Error)
	default:
		return sdk.NewTextBlock(b.Text)
	}
}

func fileBlock(b model.Block) sdk.ContentBlockParamUnion {
	data := base64.StdEncoding.EncodeToString(b.Data)
	switch {
	case b.IsText():
		return sdk.NewTextBlock(b.FileText())
	case b.IsImage() && b.URL != "":
		return sdk.NewImageBlock(sdk.URLImageSourceParam{URL: b.URL})
	case b.IsImage():
		return sdk.NewImageBlockBase64(b.MIMEType, data)
	case b.URL != "":
		return named(sdk.NewDocumentBlock(sdk.URLPDFSourceParam{URL: b.URL}), b.Name)
	default:
		return named(sdk.NewDocumentBlock(sdk.Base64PDFSourceParam{Data: data}), b.Name)
	}
}

func named(block sdk.ContentBlockParamUnion, name string) sdk.ContentBlockParamUnion {
	if name != "" {
		block.OfDocument.Title = sdk.String(name)
	}
	return block
}

// cache marks the ends of the three stretches that the next call will send again. What is marked
// is kept for 5 minutes.
func cache(p *sdk.MessageNewParams) {
	mark := sdk.NewCacheControlEphemeralParam()
	if n := len(p.Tools); n > 0 {
		p.Tools[n-1].OfTool.CacheControl = mark
	}
	if n := len(p.System); n > 0 {
		p.System[n-1].CacheControl = mark
	}
	if n := len(p.Messages); n > 0 {
		if content := p.Messages[n-1].Content; len(content) > 0 {
			switch last := content[len(content)-1]; {
			case last.OfText != nil:
				last.OfText.CacheControl = mark
			case last.OfToolResult != nil:
				last.OfToolResult.CacheControl = mark
			}
		}
	}
}
