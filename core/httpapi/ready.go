package httpapi

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"
)

// Together these limit how long a fault may go unnoticed. In the worst case, a cached outcome is followed by a check
// that does not return, which takes 3.25 s.
const (
	readyPatience = 2 * time.Second        // for all checks of one probe
	readyGrace    = 250 * time.Millisecond // for a check to return after its context ends
	readyCache    = time.Second            // anyone may probe, so the checks run at most once a second
)

// errSilent is the error of a check that does not return when its context ends.
var errSilent = errors.New("the check did not finish within " + readyPatience.String())

// Check is a part of the server that must work for the server to be ready.
type Check struct {
	Name string
	Run  func(context.Context) error
	When func() bool // whether the server currently has that part; nil means always

	Advisory bool // the server is ready even if the check fails
}

// CheckState is the outcome of a Check.
type CheckState struct {
	Name     string
	Err      error // nil if the check passed
	Advisory bool
}

type readyResponse struct {
	Status string       `json:"status"`
	Checks []checkState `json:"checks"`
}

type checkState struct {
	Name     string `json:"name"`
	OK       bool   `json:"ok"`
	Advisory bool   `json:"advisory,omitempty"`
}

// readiness runs the checks and caches their outcome.
type readiness struct {
	changed func(CheckState) // called when a check starts to fail, fails for another reason, or passes again

	mu     sync.Mutex
	checks []*runningCheck
	until  time.Time
	last   []CheckState // the results of the last run
}

func newReadiness(checks []Check, changed func(CheckState)) *readiness {
	r := &readiness{changed: changed}
	for _, c := range checks {
		r.checks = append(r.checks, &runningCheck{Check: c})
	}
	return r
}

// run returns the state of all checks.
func (r *readiness) run(ctx context.Context) []CheckState {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Now().Before(r.until) {
		return r.last
	}
	ctx, cancel := context.WithTimeout(ctx, readyPatience)
	defer cancel()
	present := slices.DeleteFunc(slices.Clone(r.checks), func(c *runningCheck) bool { return c.When != nil && !c.When() })
	states := make([]CheckState, len(present))
	var all sync.WaitGroup
	for i, c := range present {
		all.Go(func() { states[i] = CheckState{c.Name, c.outcome(ctx), c.Advisory} })
	}
	all.Wait()
	for i, c := range present {
		if text(states[i].Err) != text(c.last) {
			r.changed(states[i])
		}
		c.last = states[i].Err
	}
	r.last, r.until = states, time.Now().Add(readyCache)
	return states
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// runningCheck is a check and its unfinished run, if any. There is one run at a time, so that a check that hangs does
// not leave a goroutine behind for each probe.
type runningCheck struct {
	Check
	last   error      // the error of the last finished run; nil if it passed
	result chan error // the result of the unfinished run; nil if there is none
}

// outcome runs the check, or waits for the unfinished run of an earlier probe.
func (c *runningCheck) outcome(ctx context.Context) error {
	if c.result == nil {
		result := make(chan error, 1)
		c.result = result
		go func() { result <- c.Run(ctx) }()
	}
	patience := time.NewTimer(readyPatience + readyGrace)
	defer patience.Stop()
	select {
	case err := <-c.result:
		c.result = nil
		return err
	case <-patience.C:
		return errSilent
	}
}

// Readiness returns the state of each check, with the error of each failed one.
func (s *Server) Readiness() []CheckState { return s.readiness.run(s.root) }

func (s *Server) logReadiness(now CheckState) {
	if now.Advisory { // the checked part logs its own problems
		return
	}
	if now.Err != nil {
		s.log.Warn("not ready", "check", now.Name, "error", now.Err)
		return
	}
	s.log.Info("ready again", "check", now.Name)
}

// live handles GET /livez. It succeeds as long as the process serves requests.
func (s *Server) live(c *fiber.Ctx) error { return c.JSON(map[string]string{"status": "ok"}) }

// ready handles GET /readyz. It succeeds if every check passes and the server is not shutting down. The response only
// names the failed checks, because anyone may request it. The log and `ropewalk doctor` give the reasons.
func (s *Server) ready(c *fiber.Ctx) error {
	response := readyResponse{Status: "ready", Checks: []checkState{}}
	for _, check := range s.Readiness() {
		response.Checks = append(response.Checks, checkState{check.Name, check.Err == nil, check.Advisory})
		if check.Err != nil && !check.Advisory {
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
