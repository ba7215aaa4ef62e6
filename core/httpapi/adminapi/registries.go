package adminapi

import (
	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/httpapi/query"
	"github.com/ropewalk/ropewalk/core/httpapi/respond"
)

type registriesResponse struct {
	Registries []core.Registry `json:"registries"`
}

// ListRegistries is GET /v1/registries.
func (h *Handlers) ListRegistries(c *fiber.Ctx, _ core.Caller) error {
	return c.JSON(registriesResponse{Registries: respond.OrEmpty(h.Registries.Registries())})
}

const searchLimit = 20 // bundles of one search, unless the client says how many

// SearchRegistries is GET /v1/registries/search.
func (h *Handlers) SearchRegistries(c *fiber.Ctx, caller core.Caller) error {
	limit, err := query.Int(c, "limit", searchLimit, 100)
	if err != nil {
		return err
	}
	arguments := map[string]any{"scope": "registry", "query": c.Query("query"), "limit": limit}
	if registry := c.Query("registry"); registry != "" {
		arguments["registry"] = registry
	}
	return h.runSystem(c, caller, "search", arguments)
}
