package httpapi

import (
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/access"
	"github.com/ropewalk/ropewalk/core/httpapi/body"
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
		CreatedAt: core.Timestamp(k.CreatedAt), ExpiresAt: timeOrNull(k.ExpiresAt), LastUsedAt: timeOrNull(k.LastUsedAt),
	}
}

func timeOrNull(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	text := core.Timestamp(t)
	return &text
}

type keysResponse struct {
	Keys []keyResponse `json:"keys"`
}

// listKeys is GET /v1/keys.
func (s *Server) listKeys(c *fiber.Ctx, caller core.Caller) error {
	all, err := s.access.Keys(c.UserContext(), caller)
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

// createKey is POST /v1/keys.
func (s *Server) createKey(c *fiber.Ctx, caller core.Caller) error {
	r, err := body.Read[keyRequest](c.Context())
	if err != nil {
		return err
	}
	wanted := access.NewKey{Name: r.Name, Role: r.Role}
	if r.ExpiresAt != nil {
		if wanted.ExpiresAt, _, err = moment("expiresAt", *r.ExpiresAt); err != nil {
			return err
		}
	}
	made, text, err := s.access.CreateKey(c.UserContext(), caller, wanted)
	if err != nil {
		return err
	}
	response := keyOf(made)
	response.Key = text.Reveal()
	return c.JSON(response)
}

// revokeKey is DELETE /v1/keys/:id.
func (s *Server) revokeKey(c *fiber.Ctx, caller core.Caller) error {
	id := c.Params("id")
	if err := s.access.RevokeKey(c.UserContext(), caller, id); err != nil {
		return err
	}
	return c.JSON(deleteResponse{ID: id, Deleted: true})
}
