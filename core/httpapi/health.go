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

// probePatience bounds the credential and database checks of a health check, so that a probe gets a response even if
// the auth adapter hangs.
const probePatience = 500 * time.Millisecond

type healthResponse struct {
	Status  string         `json:"status"`           // ok, or degraded while the state store rejects writes
	Reason  string         `json:"reason,omitempty"` // why the server is degraded
	Uptime  float64        `json:"uptime"`           // seconds since the server started
	Bundles []bundleHealth `json:"bundles"`
}

type bundleHealth struct {
	Name  string     `json:"name"`
	State core.State `json:"state"`
}

// health handles GET /v1/health.
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

// stateHealth reports whether the state store accepts writes. A database that does not respond in time is treated as
// rejecting them.
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
	s.log.Warn("the state store does not accept writes", "error", err)
	if known, ok := errors.AsType[*core.Error](err); ok {
		return "degraded", known.Message
	}
	return "degraded", "the state store does not accept writes at the moment"
}

// bundlesHealth handles GET /v1/bundles/health.
func (s *Server) bundlesHealth(c *fiber.Ctx, _ core.Caller) (any, error) {
	workspace, err := s.probed(c)
	if err != nil {
		return nil, err
	}
	return httpio.OrEmpty(s.apps.Health(workspace)), nil
}

// probed returns the workspace of a health check: the caller's if the credentials are valid, or else the default
// workspace. These routes respond to everyone except a client that is guessing keys.
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

// uptime returns the seconds since the server started, to the millisecond.
func (s *Server) uptime() float64 { return float64(time.Since(s.started).Milliseconds()) / 1000 }
