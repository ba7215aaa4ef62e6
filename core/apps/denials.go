package apps

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kballard/go-shellquote"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/instance"
	"github.com/ropewalk/ropewalk/core/apps/source"
	"github.com/ropewalk/ropewalk/core/process/sandbox"
)

// Denial records that the sandbox denied an app access to something or hid it from the app.
type Denial struct {
	core.Access
	Count    int    `json:"count"`
	First    string `json:"first"`
	Last     string `json:"last"`
	Observed bool   `json:"observed"` // the sandbox observed it; otherwise it is inferred from a failed start and the definition
}

// maxDenials limits how many denials are remembered per app. The oldest is dropped first.
const maxDenials = 50

// denials records what one app has been denied since the server started.
type denials struct {
	mu  sync.Mutex
	all []Denial
}

// add counts denials of a. It reports whether they are news: whether they are the first of their kind and there was
// space to record them. An app that tries one address after another therefore cannot flood the workspace's events.
func (d *denials) add(a core.Access, count int, observed bool) (news bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := core.Timestamp(time.Now())
	i := slices.IndexFunc(d.all, func(known Denial) bool { return known.Access == a })
	if i < 0 {
		d.all = append(d.all, Denial{Access: a, Count: count, First: now, Last: now, Observed: observed})
		if len(d.all) > maxDenials {
			d.all = slices.Delete(d.all, 0, 1)
			return false
		}
		return true
	}
	d.all[i].Count += count
	d.all[i].Last, d.all[i].Observed = now, d.all[i].Observed || observed
	return false
}

// shown returns the denials for whose access visible returns true.
func (d *denials) shown(visible func(core.Access) bool) []Denial {
	d.mu.Lock()
	defer d.mu.Unlock()
	shown := []Denial{}
	for _, one := range d.all {
		if visible(one.Access) {
			shown = append(shown, one)
		}
	}
	return shown
}

// forget drops the denials of access that is now allowed.
func (d *denials) forget(allowed []core.Access) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all = slices.DeleteFunc(d.all, func(one Denial) bool {
		return slices.ContainsFunc(allowed, func(a core.Access) bool { return sameTarget(a, one.Access) })
	})
}

// noteDenied records what the sandbox denied. A path that a traced app opens is recorded only if it exists and could be
// granted.
func (a *app) noteDenied(access core.Access, count int) {
	if access.Kind.IsPath() {
		if _, err := os.Stat(access.Target); err != nil && access.Kind == core.PermissionWrite {
			access.Target = filepath.Dir(access.Target) // to create a file there
		}
		checked, err := a.manager.guard.Check(access)
		if err != nil {
			return
		}
		access = checked
	}
	if a.denials.add(access, count, true) {
		a.publish(core.EventAppDenied, core.AppDenied{Name: a.key.Name})
	}
}

// TracePermissions restarts an app, watches which files it opens during d, and restarts it again. The denials in the
// result include the files that it could not open. It returns early if ctx ends.
//
// Errors: core.CodeNotFound; core.CodeBadRequest if nothing can be watched; core.CodeConflict if the app is already being
// traced.
func (m *Manager) TracePermissions(ctx context.Context, c core.Caller, name string, d time.Duration) (Permissions, error) {
	a, err := m.find(c.Workspace.ID, name)
	if err != nil {
		return Permissions{}, err
	}
	record := a.now.Load().record
	switch {
	case d <= 0 || d > maxTrace:
		return Permissions{}, core.Errorf(core.CodeBadRequest, "seconds must be between 1 and %d", int(maxTrace.Seconds()))
	case record.Remote != nil || m.o.Confinement.Level(m.sandboxOf(a.key)) == sandbox.LevelNone:
		return Permissions{}, core.Errorf(core.CodeBadRequest, "app %s does not run in this server's sandbox, so there are no denials to watch", name)
	case !record.Running:
		return Permissions{}, core.Errorf(core.CodeBadRequest, "app %s is stopped; start it first", name)
	case !a.traced.CompareAndSwap(false, true):
		return Permissions{}, core.Errorf(core.CodeConflict, "app %s is already being traced", name)
	}
	if _, err = m.Restart(ctx, a.key.Workspace, name); err == nil || core.CodeOf(err) == core.CodeStartFailed {
		err = nil // an app that does not start is worth tracing too
		select {
		case <-ctx.Done():
		case <-time.After(d):
		}
	}
	a.traced.Store(false)
	if _, failed := m.Restart(context.WithoutCancel(ctx), a.key.Workspace, name); err == nil && core.CodeOf(failed) != core.CodeStartFailed {
		err = failed
	}
	return m.permissionsOf(c, a), err
}

// maxTrace limits how long an app is traced.
const maxTrace = 5 * time.Minute

// noteFailure records what the sandbox hides from an app that did not start, according to the app's definition.
func (a *app) noteFailure() {
	m := a.manager
	if m.o.Confinement.Level(m.sandboxOf(a.key)) == sandbox.LevelNone {
		return
	}
	news := false
	a.requested.Store(nil)
	for _, r := range a.missing() {
		news = a.denials.add(r.Access, 1, false) || news
	}
	if news {
		a.publish(core.EventAppDenied, core.AppDenied{Name: a.key.Name})
	}
}

// hints returns what the sandbox hides from an app that is not running, and how to allow it. The result contains only
// what the caller may grant.
func (m *Manager) hints(c core.Caller, a *app) []string {
	v := a.now.Load()
	if v.failure == nil {
		return []string{}
	}
	return a.hintsOf(c, v.failure, "ropewalk app allow "+a.key.Name+" --%s %s")
}

// hintsOf returns the hints for a failure. Targets that appear in the failure's text come first. Targets are quoted for
// the shell, because the app's definition chooses them and people copy the commands.
func (a *app) hintsOf(c core.Caller, failure *instance.Failure, remedy string) []string {
	m, hints := a.manager, []string{}
	if m.o.Confinement.Level(m.sandboxOf(a.key)) == sandbox.LevelNone {
		return hints
	}
	missing := m.grantableBy(c, a.missing())
	text := failure.Error()
	slices.SortStableFunc(missing, func(x, y core.PermissionRequest) int {
		return boolOrder(strings.Contains(text, x.Target), strings.Contains(text, y.Target))
	})
	for _, r := range missing {
		verb := "hides"
		if r.Kind == core.PermissionNet {
			verb = "blocks"
		}
		hints = append(hints, fmt.Sprintf("the sandbox %s %s; "+remedy, verb, r.Target, r.Kind, shellquote.Join(r.Target)))
	}
	for _, closed := range m.guard.Refused(m.definition(a.now.Load().record)) {
		if _, err := m.guard.Check(closed); err != nil && m.guard.MayGrant(c, closed) == nil && strings.Contains(text, closed.Target) {
			hints = append(hints, fmt.Sprintf("the sandbox hides %s; %s", closed.Target, core.TextOf(err)))
		}
	}
	if fileMissing.MatchString(text) {
		for _, r := range m.grantableBy(c, a.narrow()) {
			hints = append(hints, fmt.Sprintf("the sandbox hides the files next to %s; "+remedy, r.Target, r.Also.Kind, shellquote.Join(r.Also.Target)))
		}
	}
	if dockerMissing.MatchString(text) {
		hints = append(hints, fmt.Sprintf("the sandbox blocks Docker's socket, which controls the machine; only the configuration can allow it: apps.%s.sandbox.read: [/var/run/docker.sock]", a.key.Name))
	}
	return hints
}

// dockerMissing matches what Docker and Podman clients print when they cannot connect to their service.
var dockerMissing = regexp.MustCompile(`(?i)docker daemon|docker\.sock|podman\.sock`)

// fileMissing matches what runtimes print when a script uses a file that does not exist or that the sandbox hides.
var fileMissing = regexp.MustCompile(`(?i)no module named|cannot find (module|package)|module.not.found|no such file|ENOENT`)

// narrow returns the requests for scripts that were granted without the directory that contains them.
func (a *app) narrow() []core.PermissionRequest {
	m, record := a.manager, a.now.Load().record
	granted, _ := m.grants(record)
	covered := func(path string) bool {
		return slices.ContainsFunc(granted, func(g core.Access) bool { return g.Kind.IsPath() && sandbox.PathWithin(path, g.Target) })
	}
	return slices.DeleteFunc(m.requests(record), func(r core.PermissionRequest) bool {
		return r.Also == nil || !covered(r.Target) || covered(r.Also.Target)
	})
}

// boolOrder sorts true before false.
func boolOrder(x, y bool) int {
	switch {
	case x == y:
		return 0
	case x:
		return -1
	}
	return 1
}

// Hints returns hints about the sandbox for the last failure of an app. The result contains only what the caller may
// grant.
func (m *Manager) Hints(c core.Caller, name string) []string {
	a, err := m.find(c.Workspace.ID, name)
	if err != nil {
		return nil
	}
	return m.hints(c, a)
}

// MissingPermissions returns an app's undecided requests that the caller may decide on; nil if there are none.
func (m *Manager) MissingPermissions(c core.Caller, name string) *core.AppPermissions {
	a, err := m.find(c.Workspace.ID, name)
	if err != nil || c.MayManageApps() != nil {
		return nil
	}
	if missing := m.grantableBy(c, a.missing()); len(missing) > 0 {
		return &core.AppPermissions{Missing: missing}
	}
	return nil
}

// withHints adds what the sandbox hides to the error of an installation.
func (a *app) withHints(o source.Order, err error) error {
	failure, failed := errors.AsType[*instance.Failure](err)
	if !failed || !o.Hints {
		return err
	}
	hints := a.hintsOf(o.Caller, failure, "install it again with --allow-%s %s")
	if len(hints) == 0 {
		return err
	}
	return fmt.Errorf("%w; %s", err, strings.Join(hints, "; "))
}
