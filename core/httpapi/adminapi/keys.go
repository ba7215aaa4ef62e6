package adminapi

import (
	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/access"
	"github.com/ropewalk/ropewalk/core/httpapi/body"
	"github.com/ropewalk/ropewalk/core/httpapi/query"
	"github.com/ropewalk/ropewalk/core/httpapi/respond"
)

// keyResponse is an API key. Key is its text, which is sent only once, when it is made.
type keyResponse struct {
	ID         string    `json:"id"`
	Name       string    `json:"name"`
	User       core.User `json:"user"`
	Workspace  string    `json:"workspace"`
	Role       core.Role `json:"role"`
	CreatedAt  string    `json:"createdAt"`
	ExpiresAt  *string   `json:"expiresAt"`
	LastUsedAt *string   `json:"lastUsedAt"`
	Key        string    `json:"key,omitempty"`
}

func keyOf(k core.APIKey) keyResponse {
	return keyResponse{
		ID: k.ID, Name: k.Name, User: k.User, Workspace: k.Workspace, Role: k.Role,
		CreatedAt: core.Timestamp(k.CreatedAt), ExpiresAt: respond.TimeOrNull(k.ExpiresAt), LastUsedAt: respond.TimeOrNull(k.LastUsedAt),
	}
}

type keysResponse struct {
	Keys []keyResponse `json:"keys"`
}

// ListKeys is GET /v1/keys.
func (h *Handlers) ListKeys(c *fiber.Ctx, caller core.Caller) error {
	all, err := h.Keys.Keys(c.UserContext(), caller)
	if err != nil {
		return err
	}
	response := keysResponse{Keys: make([]keyResponse, len(all))}
	for i, k := range all {
		response.Keys[i] = keyOf(k)
	}
	return c.JSON(response)
}

type keyRequest struct {
	Name      string    `json:"name"`
	Role      core.Role `json:"role"`
	ExpiresAt *string   `json:"expiresAt"`
}

// CreateKey is POST /v1/keys.
func (h *Handlers) CreateKey(c *fiber.Ctx, caller core.Caller) error {
	r, err := body.Read[keyRequest](c.Context())
	if err != nil {
		return err
	}
	wanted := access.NewKey{Name: r.Name, Role: r.Role}
	if r.ExpiresAt != nil {
		if wanted.ExpiresAt, _, err = query.Time("expiresAt", *r.ExpiresAt); err != nil {
			return err
		}
	}
	made, text, err := h.Keys.CreateKey(c.UserContext(), caller, wanted)
	if err != nil {
		return err
	}
	response := keyOf(made)
	response.Key = text.Reveal()
	return c.JSON(response)
}

// RevokeKey is DELETE /v1/keys/:id.
func (h *Handlers) RevokeKey(c *fiber.Ctx, caller core.Caller) error {
	id := c.Params("id")
	if err := h.Keys.RevokeKey(c.UserContext(), caller, id); err != nil {
		return err
	}
	return c.JSON(respond.Deleted{ID: id, Deleted: true})
}
