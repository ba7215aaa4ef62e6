package httpapi

import (
	_ "embed" // openapi.yaml travels in the binary
	"encoding/json"

	"github.com/gofiber/fiber/v2"
	"go.yaml.in/yaml/v3"

	"github.com/ropewalk/ropewalk/core"
)

//go:embed openapi.yaml
var openapi []byte

// describeAPI is GET /v1/openapi.json.
func (s *Server) describeAPI(c *fiber.Ctx, _ core.Identity) error {
	var document any
	if err := yaml.Unmarshal(openapi, &document); err != nil {
		return err
	}
	encoded, err := json.Marshal(document)
	if err != nil {
		return err
	}
	c.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
	return c.Send(encoded)
}
