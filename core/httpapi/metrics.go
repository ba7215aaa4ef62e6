package httpapi

import (
	"errors"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/ropewalk/ropewalk/core"
)

// Metrics measures requests and writes all metrics.
type Metrics interface {
	// Text returns the metrics in the Prometheus text format.
	Text() ([]byte, error)
	// Request records a request. route is the pattern of its route, "" for a path that has none.
	Request(method, route string, status int, took time.Duration)
}

// routeKey is where a request keeps the pattern of its route.
type routeKey struct{}

// keepRoute keeps the pattern of the route that a request was served by.
func keepRoute(c *fiber.Ctx) error {
	err := c.Next()
	if _, unknown := errors.AsType[*fiber.Error](err); !unknown { // the router's own: no such path, or not with this method
		c.Context().SetUserValue(routeKey{}, c.Route().Path)
	}
	return err
}

// routeOf returns the pattern of the route of a request, "" when its path has none.
func routeOf(ctx *fasthttp.RequestCtx) string {
	path, _ := ctx.UserValue(routeKey{}).(string)
	return path
}

// metricsType is the media type of the Prometheus text format.
const metricsType = "text/plain; version=0.0.4; charset=utf-8"

// getMetrics is GET /v1/metrics. It covers all workspaces, so it is limited to the organization's
// admins.
func (s *Server) getMetrics(c *fiber.Ctx, _ core.Caller) (any, error) {
	text, err := s.options.Metrics.Text()
	if err != nil {
		return nil, err
	}
	c.Set(fiber.HeaderContentType, metricsType)
	return nil, c.Send(text)
}
