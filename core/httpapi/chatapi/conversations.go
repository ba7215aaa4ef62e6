package chatapi

import (
	"encoding/json"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/httpapi/body"
	"github.com/ropewalk/ropewalk/core/httpapi/query"
	"github.com/ropewalk/ropewalk/core/httpapi/respond"
)

const listLimit = 20 // conversations of a page, unless the client says how many

// ConversationSummary is a conversation in a list.
type ConversationSummary struct {
	ID                string   `json:"id"`
	CreatedAt         string   `json:"createdAt"`
	UpdatedAt         string   `json:"updatedAt"`
	Title             *string  `json:"title"`
	MessageCount      int      `json:"messageCount"`
	Preview           string   `json:"preview"`
	TotalInputTokens  int64    `json:"totalInputTokens"`
	TotalOutputTokens int64    `json:"totalOutputTokens"`
	TotalCostUSD      *float64 `json:"totalCostUsd"`
}

func summaryOf(c core.Conversation) ConversationSummary {
	return ConversationSummary{
		ID: c.ID, CreatedAt: core.Timestamp(c.CreatedAt), UpdatedAt: core.Timestamp(c.UpdatedAt), Title: respond.OrNull(c.Title),
		MessageCount: c.MessageCount, Preview: c.Preview,
		TotalInputTokens: c.InputTokens, TotalOutputTokens: c.OutputTokens, TotalCostUSD: c.CostUSD,
	}
}

// SummariesOf returns conversations as lists show them.
func SummariesOf(all []core.Conversation) []ConversationSummary {
	out := make([]ConversationSummary, len(all))
	for i, c := range all {
		out[i] = summaryOf(c)
	}
	return out
}

// conversationRecord is one conversation.
type conversationRecord struct {
	ID                string          `json:"id"`
	CreatedAt         string          `json:"createdAt"`
	UpdatedAt         string          `json:"updatedAt"`
	Title             *string         `json:"title"`
	TotalInputTokens  int64           `json:"totalInputTokens"`
	TotalOutputTokens int64           `json:"totalOutputTokens"`
	TotalCostUSD      *float64        `json:"totalCostUsd"`
	LastModel         *string         `json:"lastModel"`
	Metadata          json.RawMessage `json:"metadata"`
}

func recordOf(c core.Conversation) conversationRecord {
	if len(c.Metadata) == 0 || string(c.Metadata) == "null" {
		c.Metadata = json.RawMessage("{}")
	}
	return conversationRecord{
		ID: c.ID, CreatedAt: core.Timestamp(c.CreatedAt), UpdatedAt: core.Timestamp(c.UpdatedAt), Title: respond.OrNull(c.Title),
		TotalInputTokens: c.InputTokens, TotalOutputTokens: c.OutputTokens, TotalCostUSD: c.CostUSD,
		LastModel: respond.OrNull(c.LastModel), Metadata: c.Metadata,
	}
}

type conversationsResponse struct {
	Conversations []ConversationSummary `json:"conversations"`
	NextCursor    *string               `json:"nextCursor"`
	TotalCount    int                   `json:"totalCount"`
}

// ListConversations is GET /v1/conversations.
func (h *Handlers) ListConversations(c *fiber.Ctx, caller core.Caller) error {
	limit, err := query.Int(c, "limit", listLimit, 100)
	if err != nil {
		return err
	}
	page, err := h.Chat.Conversations(c.UserContext(), caller, core.ConversationQuery{
		Limit: limit, Cursor: c.Query("cursor"), Search: strings.TrimSpace(c.Query("search")), SortBy: core.ConversationSort(c.Query("sortBy")),
	})
	if err != nil {
		return err
	}
	return c.JSON(conversationsResponse{
		Conversations: SummariesOf(page.Conversations), NextCursor: respond.OrNull(page.NextCursor), TotalCount: page.TotalCount,
	})
}

type messageResponse struct {
	Role      string          `json:"role"`
	Content   string          `json:"content"`
	Timestamp string          `json:"timestamp"`
	Metadata  json.RawMessage `json:"metadata,omitempty"`
}

type historyResponse struct {
	ConversationID string            `json:"conversationId"`
	Messages       []messageResponse `json:"messages"`
}

// GetHistory is GET /v1/conversations/:id/history.
func (h *Handlers) GetHistory(c *fiber.Ctx, caller core.Caller) error {
	id := c.Params("id")
	messages, err := h.Chat.History(c.UserContext(), caller, id)
	if err != nil {
		return err
	}
	return c.JSON(historyResponse{ConversationID: id, Messages: messagesOf(messages)})
}

func messagesOf(messages []core.Message) []messageResponse {
	out := make([]messageResponse, len(messages))
	for i, m := range messages {
		out[i] = messageResponse{Role: m.Role, Content: m.Content, Timestamp: core.Timestamp(m.Timestamp), Metadata: m.Metadata}
	}
	return out
}

// GetConversation is GET /v1/conversations/:id.
func (h *Handlers) GetConversation(c *fiber.Ctx, caller core.Caller) error {
	conversation, err := h.Chat.Conversation(c.UserContext(), caller, c.Params("id"))
	if err != nil {
		return err
	}
	return respond.WithETag(c, recordOf(conversation))
}

type conversationEdit struct {
	Title    *string         `json:"title"`
	Metadata json.RawMessage `json:"metadata"`
}

// UpdateConversation is PATCH /v1/conversations/:id.
func (h *Handlers) UpdateConversation(c *fiber.Ctx, caller core.Caller) error {
	r, err := body.Read[conversationEdit](c.Context())
	if err != nil {
		return err
	}
	changed, err := h.Chat.Edit(c.UserContext(), caller, c.Params("id"), r.Title, r.Metadata)
	if err != nil {
		return err
	}
	return c.JSON(recordOf(changed))
}

type forkRequest struct {
	AtMessage *int `json:"atMessage"`
}

// ForkConversation is POST /v1/conversations/:id/fork. Without a body it copies every message.
func (h *Handlers) ForkConversation(c *fiber.Ctx, caller core.Caller) error {
	var r forkRequest
	if len(c.Context().PostBody()) > 0 {
		var err error
		if r, err = body.Read[forkRequest](c.Context()); err != nil {
			return err
		}
	}
	made, err := h.Chat.Fork(c.UserContext(), caller, c.Params("id"), r.AtMessage)
	if err != nil {
		return err
	}
	return c.JSON(recordOf(made))
}

// DeleteConversation is DELETE /v1/conversations/:id.
func (h *Handlers) DeleteConversation(c *fiber.Ctx, caller core.Caller) error {
	id := c.Params("id")
	if err := h.Chat.Delete(c.UserContext(), caller, id); err != nil {
		return err
	}
	return c.JSON(respond.Deleted{ID: id, Deleted: true})
}
