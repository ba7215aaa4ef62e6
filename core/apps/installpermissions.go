package apps

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/apps/interact"
	"github.com/ropewalk/ropewalk/core/apps/source"
	"github.com/ropewalk/ropewalk/core/bundle"
	"github.com/ropewalk/ropewalk/core/config"
	"github.com/ropewalk/ropewalk/core/process/sandbox"
)

// decideInstall checks the decisions that come with an installation and adds them to its record. Nothing else is
// granted, except for the paths in user_config when someone installs from a path on this machine. Without decisions,
// all of these paths are granted. With decisions, only the paths that the sandbox can open and that nobody is asked
// about are granted.
func (m *Manager) decideInstall(ctx context.Context, o source.Order, record *core.Installation) error {
	key := interact.AppRef{Workspace: record.Workspace, Name: record.Name}
	change := core.PermissionChange{}
	if o.Permissions != nil {
		change.Allow, change.Deny = o.Permissions.Allow, o.Permissions.Deny
	}
	if err := m.checkDecisions(o.Caller, key, &change); err != nil {
		return err
	}
	var implied []core.Permission
	if _, declared := m.declaration(key); !declared {
		implied = m.userConfigGrants(*record, o.Caller.User.ID)
	}
	requested := m.requests(*record)
	if o.Permissions != nil { // only what nobody is asked about
		implied = slices.DeleteFunc(implied, func(p core.Permission) bool {
			covers := func(a core.Access) bool { return a.Kind.IsPath() && sandbox.PathWithin(p.Target, a.Target) }
			return slices.ContainsFunc(requested, func(r core.PermissionRequest) bool { return covers(r.Access) }) ||
				slices.ContainsFunc(change.Allow, covers) || slices.ContainsFunc(change.Deny, covers)
		})
	}
	if len(implied)+len(change.Allow)+len(change.Deny) > 0 {
		if err := m.identity.ensure(ctx, m.o.Home, m.o.Records); err != nil {
			return err
		}
		for i := range implied {
			implied[i].Server = m.identity.text()
		}
	}
	record.Permissions = append(m.changed(nil, record.Source, o.Caller, change), implied...)
	if o.Permissions == nil {
		return nil
	}
	return m.requireDecisions(o.Caller, *record, requested)
}

// decideUpdate checks the decisions that come with an update and adds them to its record. Earlier decisions are kept.
func (m *Manager) decideUpdate(ctx context.Context, r source.UpdateRequest, found *source.Candidate) error {
	if r.Permissions == nil {
		return nil
	}
	record := &found.Record
	change := core.PermissionChange{Allow: r.Permissions.Allow, Deny: r.Permissions.Deny}
	if len(r.Permissions.Revoke) > 0 {
		return errRevoke()
	}
	if err := m.checkDecisions(r.Caller, interact.AppRef{Workspace: record.Workspace, Name: record.Name}, &change); err != nil {
		return err
	}
	if err := m.identity.ensure(ctx, m.o.Home, m.o.Records); err != nil {
		return err
	}
	found.Decide = func(before []core.Permission) []core.Permission {
		return m.changed(before, record.Source, r.Caller, change)
	}
	record.Permissions = found.Decide(record.Permissions)
	return m.requireDecisions(r.Caller, *record, m.requests(*record))
}

// errRevoke returns the error for a request that revokes permissions together with an installation or an update.
func errRevoke() error {
	return core.Errorf(core.CodeBadRequest, "permissions.revoke is for installed apps: leave it out, and use /v1/apps/:name/permissions")
}

// requireDecisions returns core.CodePermissionsRequired if an installation requests something that has not been
// decided.
func (m *Manager) requireDecisions(c core.Caller, record core.Installation, requested []core.PermissionRequest) error {
	if err := checkCount(record.Permissions); err != nil {
		return err
	}
	missing := m.undecided(record, m.grantableBy(c, requested))
	if len(missing) == 0 {
		return nil
	}
	return core.Errorf(core.CodePermissionsRequired, "the app asks for %d permissions that were neither allowed nor denied; details.missing lists them", len(missing)).
		WithDetails(map[string]any{"missing": missing})
}

// userConfigGrants returns the paths in the user_config of an app from a path on this machine, as permissions. The
// result is empty if only the configuration may grant permissions.
func (m *Manager) userConfigGrants(record core.Installation, by string) (all []core.Permission) {
	manifest, err := bundle.ParseManifest(record.Manifest)
	if err != nil || record.Source.Kind != core.SourcePath || record.Remote != nil || m.guard.Grantable == config.GrantersNobody {
		return nil
	}
	for _, path := range manifest.GrantedPaths(record.Env) {
		checked, err := m.guard.CheckProtected(core.Access{Kind: core.PermissionWrite, Target: path})
		if err != nil {
			m.log.Warn("a user_config directory was not granted to an app", "workspace", record.Workspace, "app", record.Name, "reason", core.TextOf(err))
			continue
		}
		all = append(all, core.Permission{Access: checked, By: by, At: core.Timestamp(time.Now()), Server: m.identity.text(), Source: record.Source.Text(), Legacy: true})
	}
	return all
}

// recordGrants records permissions for the paths in user_config, for an app that was installed by a server version that
// did not record permissions.
func (m *Manager) recordGrants(ctx context.Context, r core.Installation) (core.Installation, error) {
	if r.Permissions != nil || r.Source.Kind != core.SourcePath || len(m.userConfigGrants(r, "")) == 0 {
		return r, nil
	}
	if _, declared := m.declaration(interact.AppRef{Workspace: r.Workspace, Name: r.Name}); declared {
		return r, nil
	}
	if err := m.identity.ensure(ctx, m.o.Home, m.o.Records); err != nil {
		return r, err
	}
	changed, err := m.o.Records.ChangeInstallation(ctx, r.Workspace, r.Name, func(in *core.Installation) error {
		if in.Permissions == nil {
			in.Permissions = m.userConfigGrants(*in, "")
		}
		return nil
	})
	r.Permissions = changed.Permissions
	return r, err
}

// checkOrder is decideInstall for the requests that the order itself implies. It runs before anything is fetched.
func (m *Manager) checkOrder(ctx context.Context, o source.Order) error {
	if o.Permissions == nil {
		return nil
	}
	if len(o.Permissions.Revoke) > 0 {
		return errRevoke()
	}
	change := *o.Permissions
	if err := m.checkDecisions(o.Caller, interact.AppRef{Workspace: o.Workspace, Name: expectedName(o)}, &change); err != nil {
		return err
	}
	if err := m.identity.ensure(ctx, m.o.Home, m.o.Records); err != nil {
		return err
	}
	known := core.Installation{Workspace: o.Workspace, Source: o.Source}
	known.Permissions = m.changed(nil, o.Source, o.Caller, change)
	return m.requireDecisions(o.Caller, known, m.orderRequests(o))
}

// updateGrants updates the permissions for the paths in the user_config of an app that was installed from a path, after
// its values have changed. Only a change by an organization admin grants paths, and only those in the values that the
// change sets, because somebody else may have set the others.
func (m *Manager) updateGrants(in *core.Installation, s Settings) {
	if in.Source.Kind != core.SourcePath {
		return
	}
	if s.Caller.MayInstall(core.SourcePath) != nil {
		if in.Permissions == nil { // a declared app: recordGrants must not grant these values once it is no longer declared
			in.Permissions = []core.Permission{}
		}
		return
	}
	all, named := m.userConfigGrants(*in, ""), *in
	named.Env = maps.Clone(in.Env)
	maps.DeleteFunc(named.Env, func(name string, _ core.Secret) bool {
		_, variable := s.Env[name]
		_, field := s.UserConfig[name]
		return !variable && !field
	})
	granted := m.userConfigGrants(named, s.Caller.User.ID)
	in.Permissions = slices.DeleteFunc(slices.Clone(in.Permissions), func(p core.Permission) bool {
		same := func(other core.Permission) bool { return other.Access == p.Access }
		return p.Legacy && (!slices.ContainsFunc(all, same) || slices.ContainsFunc(granted, same))
	})
	in.Permissions = append(in.Permissions, granted...)
}
