package httpapi

import (
	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
)

// Metrics writes the metrics in the Prometheus text format.
type Metrics interface {
	Text() ([]byte, error)
}

// metricsType is the media type of the Prometheus text format.
const metricsType = "text/plain; version=0.0.4; charset=utf-8"

// getMetrics is GET /v1/metrics. It covers all workspaces, so it is limited to the organization's
// admins.
func (s *Server) getMetrics(c *fiber.Ctx, id core.Identity) error {
	if !id.User.OrgRole.Admin() {
		return core.Errorf(core.CodeForbidden, "metrics need the organization role admin or owner")
	}
	text, err := s.options.Metrics.Text()
	if err != nil {
		return err
	}
	c.Set(fiber.HeaderContentType, metricsType)
	return c.Send(text)
}
