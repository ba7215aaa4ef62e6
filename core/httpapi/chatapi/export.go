package chatapi

import (
	"encoding/json"
	"fmt"
	"mime"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/chat"
	"github.com/ropewalk/ropewalk/core/webguard"
)

// exportFormat is the version of conversationExport.
const exportFormat = 1

// conversationExport is the JSON file of an exported conversation. POST /v1/conversations/import restores it.
type conversationExport struct {
	Format       int                `json:"format"`
	Conversation conversationRecord `json:"conversation"`
	Messages     []messageResponse  `json:"messages"`
}

// ExportConversation handles GET /v1/conversations/:id/export.
func (h *Handlers) ExportConversation(c *fiber.Ctx, caller core.Caller) (any, error) {
	id, format := c.Params("id"), c.Query("format", "json")
	if format != "json" && format != "markdown" {
		return nil, core.Errorf(core.CodeBadRequest, "format must be json or markdown")
	}
	conversation, err := h.Chat.Conversation(c.UserContext(), caller, id)
	if err != nil {
		return nil, err
	}
	messages, err := h.Chat.History(c.UserContext(), caller, id)
	if err != nil {
		return nil, err
	}
	for i := range messages {
		messages[i].Metadata = chat.WithoutReasoning(messages[i].Metadata)
	}
	if format == "markdown" {
		c.Set(fiber.HeaderContentDisposition, `attachment; filename="`+conversation.ID+`.md"`)
		c.Set(fiber.HeaderContentType, "text/markdown; charset=utf-8")
		return nil, c.SendString(markdownOf(conversation, messages))
	}
	c.Set(fiber.HeaderContentDisposition, `attachment; filename="`+conversation.ID+`.json"`)
	return conversationExport{Format: exportFormat, Conversation: recordOf(conversation), Messages: messagesOf(messages)}, nil
}

// markdownOf renders a conversation in human-readable form.
func markdownOf(c core.Conversation, messages []core.Message) string {
	var b strings.Builder
	title := c.Title
	if title == "" {
		title = c.ID
	}
	fmt.Fprintf(&b, "# %s\n", title)
	for _, m := range messages {
		name := "User"
		if m.Role == "assistant" {
			name = "Assistant"
		}
		fmt.Fprintf(&b, "\n## %s (%s)\n", name, core.Timestamp(m.Timestamp))
		writeParts(&b, m)
	}
	return b.String()
}

// writeParts writes the text parts and tool calls of a message. If their order is not known, all text comes first.
func writeParts(b *strings.Builder, m core.Message) {
	var metadata exportedMetadata
	_ = json.Unmarshal(m.Metadata, &metadata) // a message without metadata has no tool calls
	calls, parts := metadata.ToolCalls, metadata.Parts
	if !chat.PartsMatch(parts, m.Content, len(calls)) {
		fmt.Fprintf(b, "\n%s\n", m.Content)
		for _, call := range calls {
			call.write(b)
		}
		return
	}
	for _, p := range parts {
		switch p.Type {
		case chat.PartText:
			fmt.Fprintf(b, "\n%s\n", p.Text)
		case chat.PartToolCall:
			calls[*p.Index].write(b)
		}
	}
}

type exportedMetadata struct {
	ToolCalls []exportedCall `json:"toolCalls"`
	Parts     []chat.Part    `json:"parts"`
}

type exportedCall struct {
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

func (call exportedCall) write(b *strings.Builder) {
	fmt.Fprintf(b, "\nTool `%s`\n\n```json\n%s\n```\n", call.Name, call.Input)
}

// GetAttachment handles GET /v1/conversations/:id/attachments/:attachment. A browser must not run an attachment, so it
// is sent as a download with a sandbox policy.
func (h *Handlers) GetAttachment(c *fiber.Ctx, caller core.Caller) (any, error) {
	a, err := h.Chat.Attachment(c.UserContext(), caller, c.Params("id"), c.Params("attachment"))
	if err != nil {
		return nil, err
	}
	c.Set(fiber.HeaderContentType, webguard.ServedType(a.MIMEType))
	c.Set(fiber.HeaderContentDisposition, mime.FormatMediaType("attachment", map[string]string{"filename": a.Name}))
	c.Set(fiber.HeaderContentSecurityPolicy, "default-src 'none'; sandbox")
	c.Set(fiber.HeaderCacheControl, "private, max-age=3600, immutable")
	return nil, c.Send(a.Content)
}
