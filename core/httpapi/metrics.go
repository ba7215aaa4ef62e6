package httpapi

import (
	"errors"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/ropewalk/ropewalk/core"
)

// Metrics records requests and returns all metrics.
type Metrics interface {
	// Text returns the metrics in the Prometheus text format.
	Text() ([]byte, error)
	// Request records a request. route is the pattern of its route, or "" for a path without a route.
	Request(method, route string, status int, took time.Duration)
}

// routeKey is the key of the user value that holds the pattern of a request's route.
type routeKey struct{}

// keepRoute stores the pattern of the route that served a request.
func keepRoute(c *fiber.Ctx) error {
	err := c.Next()
	if _, unknown := errors.AsType[*fiber.Error](err); !unknown { // an error of the router itself means that no route served the request
		c.Context().SetUserValue(routeKey{}, c.Route().Path)
	}
	return err
}

// routeOf returns the pattern of a request's route, or "" if its path has none.
func routeOf(ctx *fasthttp.RequestCtx) string {
	path, _ := ctx.UserValue(routeKey{}).(string)
	return path
}

// metricsType is the media type of the Prometheus text format.
const metricsType = "text/plain; version=0.0.4; charset=utf-8"

// getMetrics handles GET /v1/metrics. The metrics cover all workspaces, so only organization admins may read them.
func (s *Server) getMetrics(c *fiber.Ctx, _ core.Caller) (any, error) {
	text, err := s.options.Metrics.Text()
	if err != nil {
		return nil, err
	}
	c.Set(fiber.HeaderContentType, metricsType)
	return nil, c.Send(text)
}
