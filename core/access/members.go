package access

import (
	"context"
	"slices"
	"time"

	"github.com/ropewalk/ropewalk/core"
)

const (
	maxMembers  = 10_000           // users with cached workspaces
	membersLife = 10 * time.Second // bounds the effect of a lost notice from a peer server
)

// members caches the workspaces of users, so that most requests need no database access.
type members struct {
	users Users
	known *known[member, []core.Workspace]
}

// member is the key of the cache. It includes the organization role because memberships also depend on it.
type member struct {
	userID  string
	orgRole core.Role
}

func (m *members) workspaces(ctx context.Context, u core.User) ([]core.Workspace, error) {
	list, err := m.known.get(ctx, member{u.ID, u.OrgRole}, membersLife, func(ctx context.Context) ([]core.Workspace, error) {
		return m.users.Workspaces(ctx, u)
	})
	if err != nil {
		return nil, unavailable(err)
	}
	return list, nil
}

func (m *members) forget(userID string) {
	m.known.forget(func(who member, _ []core.Workspace) bool { return userID == "" || who.userID == userID })
}

// Workspaces returns the workspaces of an identity. The first one is used for requests without a workspace id:
// the default workspace, or else the personal one.
func (a *Access) Workspaces(ctx context.Context, id core.Identity) ([]core.Workspace, error) {
	list, err := a.scoped(ctx, id)
	return slices.Clone(list), err
}

// scoped returns the workspaces of an identity's user, within the scope of an API key.
func (a *Access) scoped(ctx context.Context, id core.Identity) ([]core.Workspace, error) {
	if id.Scope.Workspace == "" {
		return a.members.workspaces(ctx, id.User)
	}
	user := id.User
	user.OrgRole = id.Scope.UserRole
	list, err := a.members.workspaces(ctx, user)
	for _, w := range list {
		if w.ID == id.Scope.Workspace {
			if !id.Scope.Role.Admin() {
				w.Role = core.RoleMember
			}
			return []core.Workspace{w}, err
		}
	}
	return nil, err
}

// Caller returns an identity as a caller in a workspace; "" means the first of Workspaces. If the identity is
// not a member, the error is the same as for a workspace that does not exist: core.CodeWorkspaceDenied.
func (a *Access) Caller(ctx context.Context, id core.Identity, workspace string) (core.Caller, error) {
	list, err := a.scoped(ctx, id)
	if err != nil {
		return core.Caller{}, err
	}
	if workspace == "" && len(list) > 0 {
		return core.Caller{Identity: id, Workspace: list[0]}, nil
	}
	for _, w := range list {
		if w.ID == workspace {
			return core.Caller{Identity: id, Workspace: w}, nil
		}
	}
	return core.Caller{}, core.Errorf(core.CodeWorkspaceDenied, "not a member of this workspace")
}

// MembersChanged drops everything cached about a user, "" for all users, and ends streams and sessions that are no
// longer allowed. The store calls it after a change to users, members, roles, keys, logins or workspace names; it is
// also called when a peer server has made the change. When it returns, the change is in effect here.
func (a *Access) MembersChanged(userID string) {
	a.gate.Load().forget(userID)
	a.members.forget(userID)
	a.keys.forget(userID)
	a.provisioned.forget(func(_ provisionedAs, u core.User) bool { return userID == "" || u.ID == userID })
	a.logins.forget(func(_ fingerprint, c core.Cookie) bool { return userID == "" || c.Identity.User.ID == userID })
	a.unrevoked.forget(func(credential, bool) bool { return true })
	a.watchers.notify(userID)
}
