package chatapi

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/chat/part"
)

// exportFormat is the version of conversationExport.
const exportFormat = 1

// conversationExport is a conversation as a file. POST /v1/conversations/import restores it.
type conversationExport struct {
	Format       int                `json:"format"`
	Conversation conversationRecord `json:"conversation"`
	Messages     []messageResponse  `json:"messages"`
}

// ExportConversation is GET /v1/conversations/:id/export.
func (h *Handlers) ExportConversation(c *fiber.Ctx, caller core.Caller) error {
	id, format := c.Params("id"), c.Query("format", "json")
	if format != "json" && format != "markdown" {
		return core.Errorf(core.CodeBadRequest, "format can be json or markdown")
	}
	conversation, err := h.Chat.Conversation(c.UserContext(), caller, id)
	if err != nil {
		return err
	}
	messages, err := h.Chat.History(c.UserContext(), caller, id)
	if err != nil {
		return err
	}
	if format == "markdown" {
		c.Set(fiber.HeaderContentDisposition, `attachment; filename="`+conversation.ID+`.md"`)
		c.Set(fiber.HeaderContentType, "text/markdown; charset=utf-8")
		return c.SendString(markdownOf(conversation, messages))
	}
	c.Set(fiber.HeaderContentDisposition, `attachment; filename="`+conversation.ID+`.json"`)
	return c.JSON(conversationExport{Format: exportFormat, Conversation: recordOf(conversation), Messages: messagesOf(messages)})
}

// markdownOf renders a conversation for people.
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

// writeParts writes the texts and tool calls of a message, all text first when their order is not known.
func writeParts(b *strings.Builder, m core.Message) {
	var metadata exportedMetadata
	_ = json.Unmarshal(m.Metadata, &metadata) // messages without tool calls have none
	calls, parts := metadata.ToolCalls, metadata.Parts
	if !part.Match(parts, m.Content, len(calls)) {
		fmt.Fprintf(b, "\n%s\n", m.Content)
		for _, call := range calls {
			call.write(b)
		}
		return
	}
	for _, p := range parts {
		if p.Type == part.Text {
			fmt.Fprintf(b, "\n%s\n", p.Text)
		} else {
			calls[*p.Index].write(b)
		}
	}
}

type exportedMetadata struct {
	ToolCalls []exportedCall `json:"toolCalls"`
	Parts     []part.Part    `json:"parts"`
}

type exportedCall struct {
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

func (call exportedCall) write(b *strings.Builder) {
	fmt.Fprintf(b, "\nTool `%s`\n\n```json\n%s\n```\n", call.Name, call.Input)
}
