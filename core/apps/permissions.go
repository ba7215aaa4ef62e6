package apps

import (
	"context"
	"path/filepath"
	"slices"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/instance"
	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/core/apps/permit"
	"github.com/ropewalk/ropewalk/core/apps/source"
	"github.com/ropewalk/ropewalk/core/bundle"
	"github.com/ropewalk/ropewalk/core/process/sandbox"
)

// Permissions lists what an app may use beyond its sandbox, and what it requests.
type Permissions struct {
	Name      string     `json:"name"`
	Status    core.State `json:"status"`
	LastError string     `json:"lastError,omitempty"`

	Level       string                   `json:"level"`          // none, landlock or namespaces
	Note        string                   `json:"note,omitempty"` // what is not enforced, or what the sandbox requires of the app
	Permissions []ShownPermission        `json:"permissions"`    // in the order of the decisions
	Requested   []core.PermissionRequest `json:"requested"`      // by the app's definition
	Missing     []core.PermissionRequest `json:"missing"`        // the part of Requested that is undecided
	Configured  ConfiguredAccess         `json:"configured"`
	Denials     []Denial                 `json:"denials"` // what the app has been denied since the server started
	Hints       []string                 `json:"hints"`   // why the app did not start, if the sandbox may be the reason
}

// ShownPermission is a permission with its state.
type ShownPermission struct {
	core.Access
	State  string `json:"state"`
	Reason string `json:"reason,omitempty"` // why it is not in force
	By     string `json:"by,omitempty"`
	At     string `json:"at"`
}

// ConfiguredAccess lists what the configuration allows. It cannot be revoked over the API.
type ConfiguredAccess struct {
	Read    []string `json:"read"`
	Write   []string `json:"write"`
	Network []string `json:"network"`
}

// maxPermissions limits the number of decisions about one app.
const maxPermissions = 200

// newGuard returns the Guard that decides what may be granted.
func (m *Manager) newGuard() *permit.Guard {
	o := &m.o
	return &permit.Guard{
		Home: o.Home, Env: o.HostEnv, Protected: slices.Concat(o.Confinement.Hide, o.Protected), Ports: o.Confinement.Ports,
		Grantable: o.Sandbox.Grantable, Shared: o.Sandbox.Shared,
	}
}

// Permissions returns those permissions of an app that the caller may see.
func (m *Manager) Permissions(c core.Caller, name string) (Permissions, error) {
	a, err := m.find(c.Workspace.ID, name)
	if err != nil {
		return Permissions{}, err
	}
	return m.permissionsOf(c, a), nil
}

func (m *Manager) permissionsOf(c core.Caller, a *app) Permissions {
	v, settings := a.now.Load(), m.sandboxOf(a.key)
	p := Permissions{
		Name: a.key.Name, Status: v.state, Level: m.o.Confinement.Level(settings).String(), Note: m.note(a),
		Permissions: []ShownPermission{}, Requested: m.grantableBy(c, m.requests(v.record)), Denials: a.denials.shown(func(access core.Access) bool { return m.guard.MayGrant(c, access) == nil }),
		Hints:      m.hints(c, a),
		Configured: ConfiguredAccess{Read: append([]string{}, settings.Read...), Write: append([]string{}, settings.Write...), Network: settings.Network.Values()},
	}
	if v.failure != nil {
		p.LastError = v.failure.Reason
	}
	for _, decided := range v.record.Permissions {
		shown := ShownPermission{Access: decided.Access, By: decided.By, At: decided.At}
		shown.State, shown.Reason = m.stateOf(v.record, decided)
		p.Permissions = append(p.Permissions, shown)
	}
	p.Missing = m.undecided(v.record, p.Requested)
	return p
}

// note returns a sentence about what the permissions of an app do not limit, or what the sandbox requires of it; "" for
// nothing.
func (m *Manager) note(a *app) string {
	settings := m.sandboxOf(a.key)
	switch {
	case a.now.Load().record.Remote != nil:
		return "The app runs on another machine, so permissions do not apply to it."
	case m.o.Confinement.Level(settings) == sandbox.LevelNone && settings.Level == sandbox.LevelNone:
		return "Permissions are recorded but not enforced: the sandbox is turned off (sandbox.level: none)."
	case m.o.Confinement.Level(settings) == sandbox.LevelNone:
		return "Permissions are recorded but not enforced: this machine has no sandbox (" + m.o.Confinement.Probe.Reason + ")."
	case m.definition(a.now.Load().record).NeedsNoSandboxFlag():
		return "Chromium cannot create its own sandbox inside the app's; if the browser does not start, pass it the option --no-sandbox (docs/permissions.md)."
	}
	return ""
}

// stateOf returns the current state of a permission on this server, and the reason if it is not in force.
func (m *Manager) stateOf(record core.Installation, p core.Permission) (state, reason string) {
	switch {
	case p.Denied:
		return core.PermissionDenied, m.whyAccessible(record, p)
	case p.Source != record.Source.Text():
		return core.PermissionPending, "it was granted to an app from another source: " + p.Source
	case p.Server == "" || p.Server != m.identity.text():
		return core.PermissionPending, "it was granted on another server, or before a backup was restored"
	}
	checked, err := m.guard.Check(p.Access)
	if p.Legacy && core.CodeOf(err) == core.CodeForbidden {
		checked, err = m.guard.CheckProtected(p.Access)
	}
	switch {
	case err != nil:
		return core.PermissionBlocked, core.TextOf(err)
	case p.Kind.IsPath() && checked.Target != p.Target:
		return core.PermissionBlocked, p.Target + " now leads to a different place than when it was granted"
	}
	return core.PermissionGranted, ""
}

// whyAccessible returns why an app can use a path although it was denied: a directory that contains the path was
// granted. It returns "" if the app cannot use the path.
func (m *Manager) whyAccessible(record core.Installation, denied core.Permission) string {
	for _, p := range record.Permissions {
		if p.Denied || !p.Kind.IsPath() || !denied.Kind.IsPath() || !sandbox.PathWithin(denied.Target, p.Target) {
			continue
		}
		if state, _ := m.stateOf(record, p); state == core.PermissionGranted {
			return "still accessible, because " + p.Target + ", which contains it, is granted"
		}
	}
	return ""
}

// grants returns an app's permissions that are in force, and those of them that come from user_config. It is called at
// every start.
func (m *Manager) grants(record core.Installation) (all, fromUserConfig []core.Access) {
	for _, p := range record.Permissions {
		state, reason := m.stateOf(record, p)
		switch {
		case state == core.PermissionGranted:
			if all = append(all, p.Access); p.Legacy {
				fromUserConfig = append(fromUserConfig, p.Access)
			}
		case reason != "" && state != core.PermissionDenied:
			m.log.Warn("a permission of an app is not in force", "workspace", record.Workspace, "app", record.Name, "kind", p.Kind, "target", p.Target, "reason", reason)
		}
	}
	return all, fromUserConfig
}

// requests returns the access that an app's definition appears to need.
func (m *Manager) requests(record core.Installation) []core.PermissionRequest {
	if record.Remote != nil {
		return nil
	}
	return m.guard.Requests(m.definition(record))
}

// definition returns how an app is started.
func (m *Manager) definition(record core.Installation) permit.Definition {
	manifest, err := bundle.ParseManifest(record.Manifest)
	if err != nil {
		return permit.Definition{}
	}
	layout := source.LayoutOf(m.o.Home, record.Workspace)
	d := permit.Definition{
		Names: []string{record.BundleName, record.Source.Ref}, Paths: manifest.GrantedPaths(record.Env),
		Own: []string{layout.AppDir(record.Name)},
	}
	if record.Dir != "" {
		d.Own = slices.Concat(d.Own, []string{record.Dir}, instance.LinkedPackages(record.Dir, m.o.Confinement.Home))
	}
	launch, err := manifest.Launch(bundle.LaunchInput{
		Dir: record.Dir, Home: m.o.HostEnv["HOME"], Data: layout.DataDir(record.Name), Values: record.Env,
		Lookup: func(name string) (string, error) { return name, nil },
	})
	if err == nil {
		d.Program, d.Args, d.Dir, d.Env = launch.Path, launch.Args, launch.Dir, launch.Variables()
	}
	return d
}

// orderRequests returns the requests that an order suggests before its bundle is known.
func (m *Manager) orderRequests(o source.Order) []core.PermissionRequest {
	if o.Remote != nil || len(o.Args) == 0 && o.Dir == "" {
		return nil
	}
	return m.guard.Requests(orderDefinition(o))
}

// orderDefinition returns what is known about an order before its bundle is known.
func orderDefinition(o source.Order) permit.Definition {
	return permit.Definition{Names: []string{o.Source.Ref}, Program: o.Source.Ref, Args: o.Args, Dir: o.Dir, Env: core.RevealAll(o.Env)}
}

// grantableBy returns the requests that the caller may grant. Others must not learn what exists on the machine.
func (m *Manager) grantableBy(c core.Caller, all []core.PermissionRequest) []core.PermissionRequest {
	shown := []core.PermissionRequest{}
	for _, r := range all {
		if m.guard.MayGrant(c, r.Access) != nil {
			continue
		}
		if r.Also != nil && m.guard.MayGrant(c, *r.Also) != nil {
			r.Also = nil
		}
		shown = append(shown, r)
	}
	return shown
}

// undecided returns the requests that are covered neither by a decision that is valid here nor by the configuration.
func (m *Manager) undecided(record core.Installation, requested []core.PermissionRequest) []core.PermissionRequest {
	missing := []core.PermissionRequest{}
	settings := m.sandboxOf(interact.AppRef{Workspace: record.Workspace, Name: record.Name})
	for _, r := range requested {
		decided := slices.ContainsFunc(record.Permissions, func(p core.Permission) bool {
			if !covers(p.Access, r) {
				return false
			}
			state, _ := m.stateOf(record, p)
			return state == core.PermissionGranted || state == core.PermissionDenied
		})
		open := r.Kind.IsPath() && slices.ContainsFunc(slices.Concat(settings.Read, settings.Write), func(dir string) bool { return sandbox.PathWithin(r.Target, dir) }) ||
			r.Kind == core.PermissionNet && (settings.Network.Mode == sandbox.NetworkAll || slices.Contains(settings.Network.Allow, r.Target))
		if !decided && !open {
			missing = append(missing, r)
		}
	}
	return missing
}

// covers reports whether a decision about a covers a request. A decision about a directory also covers the
// paths in it. For paths, reading and writing count as the same.
func covers(a core.Access, r core.PermissionRequest) bool {
	if !a.Kind.IsPath() || !r.Kind.IsPath() {
		return a == r.Access
	}
	return sandbox.PathWithin(r.Target, a.Target)
}

// ChangePermissions records decisions about an app. It returns when they are in force: the app's old processes and
// connections are gone, and the app is running again or has failed to start, as the result shows.
//
// Errors: core.CodeNotFound; core.CodeBadRequest and core.CodeForbidden, which name what cannot be granted.
func (m *Manager) ChangePermissions(ctx context.Context, c core.Caller, name string, change core.PermissionChange) (Permissions, error) {
	key := interact.AppRef{Workspace: c.Workspace.ID, Name: name}
	if err := m.checkChange(c, key, &change); err != nil {
		return Permissions{}, err
	}
	if err := m.identity.ensure(ctx, m.o.Home, m.o.Records); err != nil {
		return Permissions{}, err
	}
	_, err := m.command(ctx, key, core.CodeStartFailed, "started with its new permissions", func(ctx context.Context, a *app) error {
		return a.decide(ctx, c, change)
	})
	a, missing := m.find(key.Workspace, name)
	if missing != nil {
		return Permissions{}, missing
	}
	if err != nil && core.CodeOf(err) != core.CodeStartFailed {
		return Permissions{}, err
	}
	a.publish(core.EventAppPermissions, core.AppPermissionsChanged{Name: name, By: c.User.ID, Allowed: len(change.Allow), Denied: len(change.Deny), Revoked: len(change.Revoke)})
	return m.permissionsOf(c, a), nil
}

// checkChange checks a change and puts its entries into the form in which they are recorded.
func (m *Manager) checkChange(c core.Caller, key interact.AppRef, change *core.PermissionChange) error {
	a, err := m.find(key.Workspace, key.Name)
	if err != nil {
		return err
	}
	if len(change.Allow)+len(change.Deny)+len(change.Revoke) == 0 {
		return core.Errorf(core.CodeBadRequest, "specify at least one of allow, deny and revoke")
	}
	if a.now.Load().record.Remote != nil {
		return core.Errorf(core.CodeBadRequest, "app %s runs on another machine, so it has no permissions here", key.Name)
	}
	return m.checkDecisions(c, key, change)
}

// checkDecisions checks what a change allows, and puts it into the form in which it is recorded.
func (m *Manager) checkDecisions(c core.Caller, key interact.AppRef, change *core.PermissionChange) error {
	allow := slices.Clone(change.Allow)
	for i, access := range allow {
		if slices.Contains(change.Deny, access) {
			return core.Errorf(core.CodeBadRequest, "%s (%s) is in both allow and deny; remove it from one of them", access.Target, access.Kind)
		}
		if err := m.guard.MayGrant(c, access); err != nil {
			return err
		}
		checked, err := m.guard.Check(access)
		if err == nil {
			err = m.guard.MayGrant(c, checked) // checks the target of symbolic links as well
		}
		if err == nil {
			err = m.o.Confinement.CheckGrant(m.sandboxOf(key), source.LayoutOf(m.o.Home, key.Workspace).DataDir(key.Name), checked)
		}
		if err != nil {
			return err
		}
		allow[i] = checked
	}
	change.Allow = allow
	return nil
}

// decide records a change and restarts the app if it should be running. The caller must hold the turn.
func (a *app) decide(ctx context.Context, c core.Caller, change core.PermissionChange) error {
	m := a.manager
	record, err := a.changeRecord(ctx, func(in *core.Installation) error {
		in.Permissions = m.changed(in.Permissions, in.Source, c, change)
		return checkCount(in.Permissions)
	})
	if err != nil {
		return invalidCommand{err}
	}
	record.Dir = a.now.Load().record.Dir
	a.requested.Store(nil)
	a.denials.forget(change.Allow)
	a.log.Info("permissions of an app changed", "by", c.User.ID, "allowed", change.Allow, "denied", change.Deny, "revoked", change.Revoke)
	if !record.Running {
		a.setRecord(record)
		return nil
	}
	if err := a.stopToStartAgain(ctx); err != nil {
		return invalidCommand{core.Wrap(core.CodeStopFailed, err, "the permissions are recorded, but processes of app "+a.key.Name+" are still running: "+core.TextOf(err))}
	}
	a.setRecord(record)
	return a.startAgain(ctx)
}

// checkCount returns core.CodeLimitReached if an app would have too many permissions.
func checkCount(all []core.Permission) error {
	if len(all) > maxPermissions {
		return core.Errorf(core.CodeLimitReached, "an app can have at most %d permissions; revoke some", maxPermissions)
	}
	return nil
}

// changed returns the permissions of an app after a change.
func (m *Manager) changed(now []core.Permission, from core.Source, c core.Caller, change core.PermissionChange) []core.Permission {
	next := slices.Clone(now)
	drop := func(access core.Access, keep func(core.Permission) bool) {
		next = slices.DeleteFunc(next, func(p core.Permission) bool { return sameTarget(p.Access, access) && !keep(p) })
	}
	everything := func(core.Permission) bool { return false }
	for _, access := range slices.Concat(change.Revoke, change.Deny) {
		drop(access, everything)
		drop(m.asRecorded(access), everything)
		if access.Kind.IsPath() {
			drop(core.Access{Kind: access.Kind, Target: permit.RealPath(access.Target)}, everything)
		}
	}
	add := func(access core.Access, denied bool) {
		next = append(next, core.Permission{
			Access: access, Denied: denied, By: c.User.ID, At: core.Timestamp(time.Now()), Server: m.identity.text(), Source: from.Text(),
		})
	}
	for _, access := range change.Deny {
		add(m.asRecorded(access), true)
	}
	for _, access := range change.Allow { // a grant from another server remains pending there
		drop(access, func(p core.Permission) bool {
			return !p.Denied && m.o.Cluster != nil && p.Server != m.identity.text()
		})
		add(access, false)
	}
	if next == nil {
		next = []core.Permission{}
	}
	return next
}

// asRecorded returns access spelled as it is recorded. It does not resolve symbolic links, so that someone who denies
// access does not learn where they lead.
func (m *Manager) asRecorded(access core.Access) core.Access {
	if access.Kind.IsPath() {
		if filepath.IsAbs(access.Target) {
			access.Target = filepath.Clean(access.Target)
		}
	} else if checked, err := m.guard.Check(access); err == nil {
		return checked
	}
	return access
}

// sameTarget reports whether a and b have the same target. For paths, reading and writing count as the same.
func sameTarget(a, b core.Access) bool {
	return a.Target == b.Target && (a.Kind == b.Kind || a.Kind.IsPath() && b.Kind.IsPath())
}

// requestsAge is how long an app's requests are cached, so that listing apps does not access the disk every time.
const requestsAge = 5 * time.Second

type cachedRequests struct {
	at      time.Time
	record  core.Installation
	missing []core.PermissionRequest
}

// missing returns the undecided requests of an app.
func (a *app) missing() []core.PermissionRequest {
	record := a.now.Load().record
	if cached := a.requested.Load(); cached != nil && time.Since(cached.at) < requestsAge && sameInstallation(cached.record, record) {
		return cached.missing
	}
	missing := a.manager.undecided(record, a.manager.requests(record))
	a.requested.Store(&cachedRequests{time.Now(), record, missing})
	return missing
}
