package httpapi

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/httpapi/body"
)

const listLimit = 20 // conversations of a page, unless the client says how many

// conversationSummary is a conversation in a list.
type conversationSummary struct {
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

func summaryOf(c core.Conversation) conversationSummary {
	return conversationSummary{
		ID: c.ID, CreatedAt: core.Timestamp(c.CreatedAt), UpdatedAt: core.Timestamp(c.UpdatedAt), Title: orNull(c.Title),
		MessageCount: c.MessageCount, Preview: c.Preview,
		TotalInputTokens: c.InputTokens, TotalOutputTokens: c.OutputTokens, TotalCostUSD: c.CostUSD,
	}
}

func summariesOf(all []core.Conversation) []conversationSummary {
	out := make([]conversationSummary, len(all))
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
		ID: c.ID, CreatedAt: core.Timestamp(c.CreatedAt), UpdatedAt: core.Timestamp(c.UpdatedAt), Title: orNull(c.Title),
		TotalInputTokens: c.InputTokens, TotalOutputTokens: c.OutputTokens, TotalCostUSD: c.CostUSD,
		LastModel: orNull(c.LastModel), Metadata: c.Metadata,
	}
}

func orNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

type conversationsResponse struct {
	Conversations []conversationSummary `json:"conversations"`
	NextCursor    *string               `json:"nextCursor"`
	TotalCount    int                   `json:"totalCount"`
}

// listConversations is GET /v1/conversations.
func (s *Server) listConversations(c *fiber.Ctx, caller core.Caller) error {
	limit, err := queryInt(c, "limit", listLimit, 100)
	if err != nil {
		return err
	}
	page, err := s.chat.Conversations(c.UserContext(), caller, core.ConversationQuery{
		Limit: limit, Cursor: c.Query("cursor"), Search: strings.TrimSpace(c.Query("search")), SortBy: core.ConversationSort(c.Query("sortBy")),
	})
	if err != nil {
		return err
	}
	return c.JSON(conversationsResponse{
		Conversations: summariesOf(page.Conversations), NextCursor: orNull(page.NextCursor), TotalCount: page.TotalCount,
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

// getHistory is GET /v1/conversations/:id/history.
func (s *Server) getHistory(c *fiber.Ctx, caller core.Caller) error {
	id := c.Params("id")
	messages, err := s.chat.History(c.UserContext(), caller, id)
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

// getConversation is GET /v1/conversations/:id.
func (s *Server) getConversation(c *fiber.Ctx, caller core.Caller) error {
	conversation, err := s.chat.Conversation(c.UserContext(), caller, c.Params("id"))
	if err != nil {
		return err
	}
	return sendWithETag(c, recordOf(conversation))
}

// sendWithETag responds with a value and its entity tag, or with 304 when the client has it.
func sendWithETag(c *fiber.Ctx, value any) error {
	encoded, err := json.Marshal(value)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(encoded)
	tag := `"` + hex.EncodeToString(sum[:16]) + `"`
	c.Set(fiber.HeaderETag, tag)
	for known := range strings.SplitSeq(c.Get(fiber.HeaderIfNoneMatch), ",") {
		known = strings.TrimPrefix(strings.TrimSpace(known), "W/")
		if known == tag || known == "*" {
			return c.SendStatus(fiber.StatusNotModified)
		}
	}
	c.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
	return c.Send(encoded)
}

type conversationEdit struct {
	Title    *string         `json:"title"`
	Metadata json.RawMessage `json:"metadata"`
}

// updateConversation is PATCH /v1/conversations/:id.
func (s *Server) updateConversation(c *fiber.Ctx, caller core.Caller) error {
	r, err := body.Read[conversationEdit](c.Context())
	if err != nil {
		return err
	}
	changed, err := s.chat.Edit(c.UserContext(), caller, c.Params("id"), r.Title, r.Metadata)
	if err != nil {
		return err
	}
	return c.JSON(recordOf(changed))
}

type forkRequest struct {
	AtMessage *int `json:"atMessage"`
}

// forkConversation is POST /v1/conversations/:id/fork. Without a body it copies every message.
func (s *Server) forkConversation(c *fiber.Ctx, caller core.Caller) error {
	var r forkRequest
	if len(c.Context().PostBody()) > 0 {
		var err error
		if r, err = body.Read[forkRequest](c.Context()); err != nil {
			return err
		}
	}
	made, err := s.chat.Fork(c.UserContext(), caller, c.Params("id"), r.AtMessage)
	if err != nil {
		return err
	}
	return c.JSON(recordOf(made))
}

type deleteResponse struct {
	ID      string `json:"id"`
	Deleted bool   `json:"deleted"`
}

// deleteConversation is DELETE /v1/conversations/:id.
func (s *Server) deleteConversation(c *fiber.Ctx, caller core.Caller) error {
	id := c.Params("id")
	if err := s.chat.Delete(c.UserContext(), caller, id); err != nil {
		return err
	}
	return c.JSON(deleteResponse{ID: id, Deleted: true})
}

const maxBulkDelete = 100

type bulkDeleteRequest struct {
	IDs []string `json:"ids"`
}

type bulkDeleteResponse struct {
	Deleted  []string `json:"deleted"`
	NotFound []string `json:"notFound"`
}

// deleteConversations is POST /v1/conversations/delete. Those that do not exist are listed and are
// not an error, so that the request may be repeated.
func (s *Server) deleteConversations(c *fiber.Ctx, caller core.Caller) error {
	r, err := body.Read[bulkDeleteRequest](c.Context())
	if err != nil {
		return err
	}
	if len(r.IDs) == 0 || len(r.IDs) > maxBulkDelete {
		return core.Errorf(core.CodeBadRequest, "ids must list 1 to %d conversations", maxBulkDelete)
	}
	response := bulkDeleteResponse{Deleted: []string{}, NotFound: []string{}}
	for _, id := range r.IDs {
		switch err := s.chat.Delete(c.UserContext(), caller, id); {
		case err == nil:
			response.Deleted = append(response.Deleted, id)
		case core.CodeOf(err) == core.CodeNotFound:
			response.NotFound = append(response.NotFound, id)
		default:
			return err
		}
	}
	return c.JSON(response)
}
