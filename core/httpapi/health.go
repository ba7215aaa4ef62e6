package httpapi

import (
	"context"
	"errors"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/httpapi/authn"
	"github.com/ropewalk/ropewalk/core/httpapi/httpio"
)

// probePatience bounds the check of credentials by a health check: a probe must succeed even while the
// auth adapter does not respond.
const probePatience = 500 * time.Millisecond

type healthResponse struct {
	Status  string         `json:"status"`           // ok, or degraded while the state takes no writes
	Reason  string         `json:"reason,omitempty"` // when it is degraded
	Uptime  float64        `json:"uptime"`           // seconds since the server started
	Bundles []bundleHealth `json:"bundles"`
}

type bundleHealth struct {
	Name  string     `json:"name"`
	State core.State `json:"state"`
}

// health is GET /v1/health.
func (s *Server) health(c *fiber.Ctx, _ core.Caller) (any, error) {
	workspace, err := s.probed(c)
	if err != nil {
		return nil, err
	}
	bundles := []bundleHealth{}
	for _, app := range s.apps.Health(workspace) {
		bundles = append(bundles, bundleHealth{Name: app.Name, State: app.State})
	}
	status, reason := s.stateHealth(c.UserContext())
	return healthResponse{Status: status, Reason: reason, Uptime: s.uptime(), Bundles: bundles}, nil
}

// stateHealth reports whether the state takes writes. A database that does not answer in time does not.
func (s *Server) stateHealth(ctx context.Context) (status, reason string) {
	if s.options.State == nil {
		return "ok", ""
	}
	ctx, cancel := context.WithTimeout(ctx, probePatience)
	defer cancel()
	err := s.options.State.CheckWritable(ctx)
	if err == nil {
		return "ok", ""
	}
	s.log.Warn("the state takes no writes", "error", err)
	if known, ok := errors.AsType[*core.Error](err); ok {
		return "degraded", known.Message
	}
	return "degraded", "the state does not take writes at the moment"
}

// bundlesHealth is GET /v1/bundles/health.
func (s *Server) bundlesHealth(c *fiber.Ctx, _ core.Caller) (any, error) {
	workspace, err := s.probed(c)
	if err != nil {
		return nil, err
	}
	return httpio.OrEmpty(s.apps.Health(workspace)), nil
}

// probed is the workspace of a health check: the caller's when the credentials are valid, else the
// default one. These routes accept every request but those of a client that guesses keys.
func (s *Server) probed(c *fiber.Ctx) (workspace string, err error) {
	cred, err := authn.FromRequest(c)
	if err != nil || (cred.Anonymous() && (!s.guard.Dev || cred.Workspace == "")) {
		return core.DefaultWorkspaceID, nil
	}
	ctx, cancel := context.WithTimeout(c.UserContext(), probePatience)
	defer cancel()
	id, err := s.authn.Identify(ctx, c, cred)
	if core.CodeOf(err) == core.CodeRateLimited {
		return "", err
	}
	if err != nil {
		return core.DefaultWorkspaceID, nil
	}
	caller, err := s.access.Caller(ctx, id, cred.Workspace)
	if err != nil {
		return core.DefaultWorkspaceID, nil
	}
	return caller.Workspace.ID, nil
}

// uptime is in seconds, to the millisecond.
func (s *Server) uptime() float64 { return float64(time.Since(s.started).Milliseconds()) / 1000 }
