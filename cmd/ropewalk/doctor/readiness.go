package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/core/control"
)

// checkReadiness asks the running server for the results of the /readyz checks.
func (e *examination) checkReadiness(ctx context.Context) {
	checks, err := control.Dial(e.home).Readiness(ctx)
	if err != nil {
		e.addError("readiness", "the server", err, "check the server's log, and restart it")
		return
	}
	e.addReadiness(checks)
}

func (e *examination) addReadiness(checks []control.Check) {
	var passed []string
	databaseDown := slices.ContainsFunc(checks, func(c control.Check) bool { return c.Name == "database" && c.Err != "" })
	for _, c := range checks {
		if c.Err == "" {
			passed = append(passed, c.Name)
			continue
		}
		if c.Name == "notices" && databaseDown {
			continue // the notices are in the same database
		}
		if c.Advisory {
			e.add("readiness", warning, c.Err, e.readinessRemedy(c.Name))
			continue
		}
		e.add("readiness", failed, fmt.Sprintf("the server is not ready: %s: %s", c.Name, c.Err), e.readinessRemedy(c.Name))
	}
	if len(passed) == len(checks) {
		e.add("readiness", ok, "the server is ready ("+strings.Join(passed, ", ")+")", "")
	}
}

// readinessRemedy returns what to do about a failing check of /readyz.
func (e *examination) readinessRemedy(check string) string {
	switch check {
	case "store":
		return "make " + e.home + " writable by the server's user, and free some space on its disk"
	case "database":
		if e.config != nil && e.config.Storage.URL != "" {
			return "check that the PostgreSQL server in storage.url is running, accepts writes and can be reached from here"
		}
		return "free some space on the disk of " + e.home + ", and restore ropewalk.db if it is missing"
	case "notices":
		return "find out what holds a lock on the notices table (see pg_stat_activity on the PostgreSQL server in storage.url), and terminate it"
	case "sessionStore":
		return "check that the server in sessionStore.url is running and can be reached from here; `ropewalk plugin list` shows the state of the plugin"
	case "identityProvider":
		return "see `identity` below, and check that this machine can reach the address in the auth section without an HTTP proxy; meanwhile, API keys and existing logins keep working"
	case "audit":
		return "free some space on the disk of audit.file, and check what audit.sinks connect to; meanwhile, actions are not recorded"
	case "auth":
		return "see what the adapter wrote to the server's log, and correct the auth section; `ropewalk plugin list` shows the state of the plugin"
	}
	return "see the server's log"
}
