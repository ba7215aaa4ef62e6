package chatapi

import (
	"encoding/json"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/httpapi/httpio"
)

const listLimit = 20 // conversations per page by default

// ConversationSummary is a conversation in a list.
type ConversationSummary struct {
	ID                string   `json:"id"`
	CreatedAt         string   `json:"createdAt"`
	UpdatedAt         string   `json:"updatedAt"`
	Title             *string  `json:"title"`
	MessageCount      int      `json:"messageCount"`
	Preview           string   `json:"preview"`
	Passage           string   `json:"passage,omitempty"` // the matching text, in search results
	TotalInputTokens  int64    `json:"totalInputTokens"`
	TotalOutputTokens int64    `json:"totalOutputTokens"`
	TotalCostUSD      *float64 `json:"totalCostUsd"`
}

func summaryOf(c core.Conversation) ConversationSummary {
	return ConversationSummary{
		ID: c.ID, CreatedAt: core.Timestamp(c.CreatedAt), UpdatedAt: core.Timestamp(c.UpdatedAt), Title: httpio.OrNull(c.Title),
		MessageCount: c.MessageCount, Preview: c.Preview, Passage: c.Passage,
		TotalInputTokens: c.InputTokens, TotalOutputTokens: c.OutputTokens, TotalCostUSD: c.CostUSD,
	}
}

// SummariesOf returns the summaries of conversations, for lists.
func SummariesOf(all []core.Conversation) []ConversationSummary {
	out := make([]ConversationSummary, len(all))
	for i, c := range all {
		out[i] = summaryOf(c)
	}
	return out
}

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
	DisabledApps      []string        `json:"disabledApps"`
}

func recordOf(c core.Conversation) conversationRecord {
	if len(c.Metadata) == 0 || string(c.Metadata) == "null" {
		c.Metadata = json.RawMessage("{}")
	}
	return conversationRecord{
		ID: c.ID, CreatedAt: core.Timestamp(c.CreatedAt), UpdatedAt: core.Timestamp(c.UpdatedAt), Title: httpio.OrNull(c.Title),
		TotalInputTokens: c.InputTokens, TotalOutputTokens: c.OutputTokens, TotalCostUSD: c.CostUSD,
		LastModel: httpio.OrNull(c.LastModel), Metadata: c.Metadata, DisabledApps: httpio.OrEmpty(c.DisabledApps),
	}
}

// ListConversations handles GET /v1/conversations.
func (h *Handlers) ListConversations(c *fiber.Ctx, caller core.Caller) (any, error) {
	limit, err := httpio.QueryInt(c, "limit", listLimit, 100)
	if err != nil {
		return nil, err
	}
	page, err := h.Chat.Conversations(c.UserContext(), caller, core.ConversationQuery{
		Limit: limit, Cursor: c.Query("cursor"), Search: strings.TrimSpace(c.Query("search")), SortBy: core.ConversationSort(c.Query("sortBy")),
	})
	if err != nil {
		return nil, err
	}
	return fiber.Map{
		"conversations": SummariesOf(page.Conversations), "nextCursor": httpio.OrNull(page.NextCursor), "totalCount": page.TotalCount,
	}, nil
}

type messageResponse struct {
	Role      string          `json:"role"`
	Content   string          `json:"content"`
	Timestamp string          `json:"timestamp"`
	Metadata  json.RawMessage `json:"metadata,omitempty"`
}

// GetHistory handles GET /v1/conversations/:id/history.
func (h *Handlers) GetHistory(c *fiber.Ctx, caller core.Caller) (any, error) {
	id := c.Params("id")
	messages, err := h.Chat.History(c.UserContext(), caller, id)
	return fiber.Map{"conversationId": id, "messages": messagesOf(messages)}, err
}

func messagesOf(messages []core.Message) []messageResponse {
	out := make([]messageResponse, len(messages))
	for i, m := range messages {
		out[i] = messageResponse{Role: m.Role, Content: m.Content, Timestamp: core.Timestamp(m.Timestamp), Metadata: m.Metadata}
	}
	return out
}

// GetConversation handles GET /v1/conversations/:id.
func (h *Handlers) GetConversation(c *fiber.Ctx, caller core.Caller) (any, error) {
	conversation, err := h.Chat.Conversation(c.UserContext(), caller, c.Params("id"))
	if err != nil {
		return nil, err
	}
	return nil, httpio.WithETag(c, recordOf(conversation))
}

// ConversationEdit is the request body of PATCH /v1/conversations/:id.
type ConversationEdit struct {
	Title        *string         `json:"title"`
	Metadata     json.RawMessage `json:"metadata"`
	DisabledApps []string        `json:"disabledApps"`
}

// UpdateConversation handles PATCH /v1/conversations/:id.
func (h *Handlers) UpdateConversation(c *fiber.Ctx, caller core.Caller, r ConversationEdit) (any, error) {
	changed, err := h.Chat.Edit(c.UserContext(), caller, c.Params("id"), core.ConversationPatch{Title: r.Title, Metadata: r.Metadata, DisabledApps: r.DisabledApps})
	return recordOf(changed), err
}

// ForkRequest is the request body of POST /v1/conversations/:id/fork.
type ForkRequest struct {
	AtMessage *int `json:"atMessage"`
}

// ForkConversation handles POST /v1/conversations/:id/fork. If there is no body, it copies every message.
func (h *Handlers) ForkConversation(c *fiber.Ctx, caller core.Caller, r ForkRequest) (any, error) {
	made, err := h.Chat.Fork(c.UserContext(), caller, c.Params("id"), r.AtMessage)
	return recordOf(made), err
}

// DeleteConversation handles DELETE /v1/conversations/:id.
func (h *Handlers) DeleteConversation(c *fiber.Ctx, caller core.Caller) (any, error) {
	id := c.Params("id")
	if err := h.Chat.Delete(c.UserContext(), caller, id); err != nil {
		return nil, err
	}
	return httpio.Deleted{ID: id, Deleted: true}, nil
}

const maxBulkDelete = 100

// BulkDelete is the request body of POST /v1/conversations/delete.
type BulkDelete struct {
	IDs []string `json:"ids"`
}

// DeleteConversations handles POST /v1/conversations/delete. Conversations that do not exist are listed in notFound and
// do not cause an error, so that the request can be repeated.
func (h *Handlers) DeleteConversations(c *fiber.Ctx, caller core.Caller, r BulkDelete) (any, error) {
	if len(r.IDs) == 0 || len(r.IDs) > maxBulkDelete {
		return nil, core.Errorf(core.CodeBadRequest, "ids must list 1 to %d conversations", maxBulkDelete)
	}
	deleted, notFound := []string{}, []string{}
	for _, id := range r.IDs {
		switch err := h.Chat.Delete(c.UserContext(), caller, id); {
		case err == nil:
			deleted = append(deleted, id)
		case core.CodeOf(err) == core.CodeNotFound:
			notFound = append(notFound, id)
		default:
			return nil, err
		}
	}
	return fiber.Map{"deleted": deleted, "notFound": notFound}, nil
}
