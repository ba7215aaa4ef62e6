package chatapi

import (
	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/httpapi/body"
)

const maxBulkDelete = 100

type bulkDeleteRequest struct {
	IDs []string `json:"ids"`
}

type bulkDeleteResponse struct {
	Deleted  []string `json:"deleted"`
	NotFound []string `json:"notFound"`
}

// DeleteConversations is POST /v1/conversations/delete. Those that do not exist are listed and are
// not an error, so that the request may be repeated.
func (h *Handlers) DeleteConversations(c *fiber.Ctx, caller core.Caller) error {
	r, err := body.Read[bulkDeleteRequest](c.Context())
	if err != nil {
		return err
	}
	if len(r.IDs) == 0 || len(r.IDs) > maxBulkDelete {
		return core.Errorf(core.CodeBadRequest, "ids must list 1 to %d conversations", maxBulkDelete)
	}
	response := bulkDeleteResponse{Deleted: []string{}, NotFound: []string{}}
	for _, id := range r.IDs {
		switch err := h.Chat.Delete(c.UserContext(), caller, id); {
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
