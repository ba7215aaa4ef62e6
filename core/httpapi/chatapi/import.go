package chatapi

import (
	"encoding/json"
	"regexp"
	"slices"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/chat"
)

// attachmentPath matches the path of an attachment that this server stores.
var attachmentPath = regexp.MustCompile(`^/v1/conversations/[A-Za-z0-9_]+/attachments/[A-Za-z0-9_]+$`)

type importedConversation struct {
	Title    *string         `json:"title"`
	Metadata json.RawMessage `json:"metadata"`
}

type importedMessage struct {
	Role      string            `json:"role"`
	Content   string            `json:"content"`
	Timestamp string            `json:"timestamp"`
	Metadata  *importedMetadata `json:"metadata"`
}

// maxCount is the largest whole number that every JSON parser reads exactly (RFC 8259 section 6).
const maxCount = 1<<53 - 1

// importedMetadata is the metadata of an exported message. Each field is decoded and checked, because clients later see
// its content as the server's own.
type importedMetadata struct {
	Skill        *string              `json:"skill,omitempty"`
	ToolCalls    []importedCall       `json:"toolCalls,omitempty"`
	Parts        []chat.Part          `json:"parts,omitempty"`
	InputTokens  *int64               `json:"inputTokens,omitempty"`
	OutputTokens *int64               `json:"outputTokens,omitempty"`
	CostUSD      *float64             `json:"costUsd,omitempty"`
	Model        *string              `json:"model,omitempty"`
	LLMMs        *int64               `json:"llmMs,omitempty"`
	Iterations   *int64               `json:"iterations,omitempty"`
	StopReason   chat.StopReason      `json:"stopReason,omitempty"`
	StopMessage  string               `json:"stopMessage,omitempty"`
	Attachments  []importedAttachment `json:"attachments,omitempty"`
}

type importedCall struct {
	ID          string                     `json:"id"`
	Name        string                     `json:"name"`
	Input       map[string]json.RawMessage `json:"input"`
	Output      string                     `json:"output"`
	OK          bool                       `json:"ok"`
	MS          int64                      `json:"ms"`
	ResourceURI string                     `json:"resourceUri,omitempty"`
	Result      map[string]json.RawMessage `json:"result,omitempty"`
}

type importedAttachment struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	MIMEType string `json:"mimeType"`
	Size     *int64 `json:"size,omitempty"`
	URL      string `json:"url"`
}

// encode returns the metadata in its stored form, for a message with the given content. It returns nil for nil
// metadata. Parts that do not match the message are left out.
func (m *importedMetadata) encode(content string) (json.RawMessage, error) {
	if m == nil {
		return nil, nil
	}
	if m.StopReason != "" && !slices.Contains(chat.StopReasons(), m.StopReason) {
		return nil, core.Errorf(core.CodeBadRequest, "metadata.stopReason must be one of %v", chat.StopReasons())
	}
	counts := []*int64{m.InputTokens, m.OutputTokens, m.LLMMs, m.Iterations}
	for i := range m.ToolCalls {
		counts = append(counts, &m.ToolCalls[i].MS)
		if m.ToolCalls[i].Input == nil {
			m.ToolCalls[i].Input = map[string]json.RawMessage{}
		}
	}
	for _, a := range m.Attachments {
		if !chat.IsAttachmentURL(a.URL) && !attachmentPath.MatchString(a.URL) {
			return nil, core.Errorf(core.CodeBadRequest, "metadata.attachments.url must be an https address of at most 2048 bytes, or the path of an attachment in this API")
		}
		counts = append(counts, a.Size)
	}
	for _, p := range m.Parts {
		if !slices.Contains([]string{chat.PartText, chat.PartToolCall, chat.PartReasoning, chat.PartSummary}, p.Type) {
			return nil, core.Errorf(core.CodeBadRequest, "metadata.parts.type must be %s, %s, %s or %s", chat.PartText, chat.PartToolCall, chat.PartReasoning, chat.PartSummary)
		}
		counts = append(counts, p.Index)
	}
	if !chat.PartsMatch(m.Parts, content, len(m.ToolCalls)) {
		m.Parts = nil
	}
	for _, n := range counts {
		if n != nil && (*n < 0 || *n > maxCount) {
			return nil, core.Errorf(core.CodeBadRequest, "metadata: %d is not a number from 0 to %d", *n, maxCount)
		}
	}
	return json.Marshal(m)
}

// ConversationImport is the request body of POST /v1/conversations/import.
type ConversationImport struct {
	Format       int                  `json:"format"`
	Conversation importedConversation `json:"conversation"`
	Messages     []importedMessage    `json:"messages"`
}

// ImportConversation handles POST /v1/conversations/import: it restores an export as a new conversation.
func (h *Handlers) ImportConversation(c *fiber.Ctx, caller core.Caller, r ConversationImport) (any, error) {
	if r.Format != exportFormat {
		return nil, core.Errorf(core.CodeBadRequest, "format must be %d, as in an export", exportFormat)
	}
	messages := make([]core.Message, len(r.Messages))
	for i, m := range r.Messages {
		at, err := time.Parse(time.RFC3339, m.Timestamp)
		if err != nil {
			return nil, core.Errorf(core.CodeBadRequest, "messages[%d].timestamp must be an RFC 3339 time", i)
		}
		metadata, err := m.Metadata.encode(m.Content)
		if err != nil {
			return nil, core.Errorf(core.CodeBadRequest, "messages[%d].%s", i, core.TextOf(err))
		}
		messages[i] = core.Message{Role: m.Role, Content: m.Content, Timestamp: at, Metadata: metadata}
	}
	restored, err := h.Chat.Restore(c.UserContext(), caller, r.Conversation.Title, r.Conversation.Metadata, messages)
	return recordOf(restored), err
}
