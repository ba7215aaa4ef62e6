package httpapi

import (
	_ "embed"
	"encoding/json"

	"github.com/gofiber/fiber/v2"
	"go.yaml.in/yaml/v3"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/httpapi/respond"
)

//go:embed openapi.yaml
var openapi []byte

// OpenAPI returns the OpenAPI document, in YAML.
func OpenAPI() []byte { return openapi }

// getOpenAPI is GET /v1/openapi.json.
func (s *Server) getOpenAPI(c *fiber.Ctx, _ core.Identity) error {
	var document any
	if err := yaml.Unmarshal(openapi, &document); err != nil {
		return err
	}
	encoded, err := json.Marshal(document)
	if err != nil {
		return err
	}
	return respond.JSON(c, encoded)
}
