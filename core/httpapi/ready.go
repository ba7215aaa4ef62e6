package httpapi

import (
	"context"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"
)

const (
	readyPatience = 2 * time.Second // for all checks of one probe
	readyCache    = time.Second     // anyone may probe: the checks run once a second at most
)

// Check is a part of the server that must work for it to be ready.
type Check struct {
	Name string
	Run  func(context.Context) error
}

type readyResponse struct {
	Status string       `json:"status"`
	Checks []checkState `json:"checks"`
}

type checkState struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
}

// readiness runs the checks and caches their outcome.
type readiness struct {
	checks []Check
	failed func(name string, err error)

	mu    sync.Mutex
	until time.Time
	last  []checkState
}

// run returns the state of all checks.
func (r *readiness) run(ctx context.Context) []checkState {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Now().Before(r.until) {
		return r.last
	}
	ctx, cancel := context.WithTimeout(ctx, readyPatience)
	defer cancel()
	states := make([]checkState, len(r.checks))
	var all sync.WaitGroup
	for i, c := range r.checks {
		all.Go(func() {
			err := c.Run(ctx)
			states[i] = checkState{Name: c.Name, OK: err == nil}
			if err != nil {
				r.failed(c.Name, err)
			}
		})
	}
	all.Wait()
	r.last, r.until = states, time.Now().Add(readyCache)
	return states
}

// live is GET /livez: the process serves requests.
func (s *Server) live(c *fiber.Ctx) error { return c.JSON(map[string]string{"status": "ok"}) }

// ready is GET /readyz: every check passes and the server is not shutting down. What is wrong is named
// here and explained in the log only, since anyone may ask.
func (s *Server) ready(c *fiber.Ctx) error {
	response := readyResponse{Status: "ready", Checks: s.readiness.run(s.root)}
	for _, check := range response.Checks {
		if !check.OK {
			response.Status = "not ready"
		}
	}
	if s.leaving.Load() {
		response.Status = "shutting down"
	}
	if response.Status != "ready" {
		c.Status(fiber.StatusServiceUnavailable)
	}
	return c.JSON(response)
}
