package httpapi

import (
	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
)

// Metrics is what a monitoring system reads.
type Metrics interface {
	Text() ([]byte, error)
}

// metricsType is the media type of the text format that Prometheus reads.
const metricsType = "text/plain; version=0.0.4; charset=utf-8"

// showMetrics is GET /v1/metrics. It tells of all workspaces, so it is for the organization's
// admins.
func (s *Server) showMetrics(c *fiber.Ctx, id core.Identity) error {
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
