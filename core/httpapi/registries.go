package httpapi

import (
	"strconv"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
)

// Registries lists the configured bundle registries.
type Registries interface {
	Registries() []core.Registry
}

type registriesResponse struct {
	Registries []core.Registry `json:"registries"`
}

// listRegistries is GET /v1/registries.
func (s *Server) listRegistries(c *fiber.Ctx, _ core.Caller) error {
	return c.JSON(registriesResponse{Registries: orEmpty(s.options.Registries.Registries())})
}

const searchLimit = 20 // bundles of one search, unless the client says how many

// searchRegistries is GET /v1/registries/search.
func (s *Server) searchRegistries(c *fiber.Ctx, caller core.Caller) error {
	limit, err := queryInt(c, "limit", searchLimit, 100)
	if err != nil {
		return err
	}
	arguments := map[string]any{"scope": "registry", "query": c.Query("query"), "limit": limit}
	if registry := c.Query("registry"); registry != "" {
		arguments["registry"] = registry
	}
	return s.runSystem(c, caller, "search", arguments)
}

// queryInt reads a whole number from 1 to most in the query.
func queryInt(c *fiber.Ctx, name string, usual, most int) (int, error) {
	n, err := strconv.Atoi(c.Query(name, strconv.Itoa(usual)))
	if err != nil || n < 1 || n > most {
		return 0, core.Errorf(core.CodeBadRequest, "%s must be a whole number from 1 to %d", name, most)
	}
	return n, nil
}
