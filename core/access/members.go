package access

import (
	"context"
	"slices"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/ropewalk/ropewalk/core"
)

const (
	maxMembers  = 10_000           // users whose workspaces are remembered
	membersLife = 10 * time.Second // how long another replica's change may go unnoticed
)

// members remembers who is a member of what, so that a request in the steady state asks no
// database.
type members struct {
	users Users

	mu     sync.Mutex // guards changes against the end of a look-up that began before them
	change uint64     // counts the changes
	known  *lru.Cache[member, membership]
}

// member is what membership depends on: the role in the organization decides with it.
type member struct {
	userID  string
	orgRole core.Role
}

type membership struct {
	workspaces []core.Workspace
	until      time.Time
}

func newMembers(users Users) *members {
	known, _ := lru.New[member, membership](maxMembers) // the one error is a size below 1
	return &members{users: users, known: known}
}

func (m *members) workspaces(ctx context.Context, u core.User) ([]core.Workspace, error) {
	who := member{u.ID, u.OrgRole}
	if found, ok := m.known.Get(who); ok && time.Now().Before(found.until) {
		return found.workspaces, nil
	}
	m.mu.Lock()
	began := m.change
	m.mu.Unlock()
	list, err := m.users.Workspaces(ctx, u)
	if err != nil {
		return nil, unavailable(err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if began == m.change {
		m.known.Add(who, membership{list, time.Now().Add(membersLife)})
	}
	return list, nil
}

func (m *members) forget(userID string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.change++
	if userID == "" {
		m.known.Purge()
		return
	}
	for _, role := range []core.Role{core.RoleOwner, core.RoleAdmin, core.RoleMember, ""} {
		m.known.Remove(member{userID, role})
	}
}

// Workspaces returns the workspaces of an identity, the one that counts without a workspace id
// first: the default workspace, else the personal one.
func (a *Access) Workspaces(ctx context.Context, id core.Identity) ([]core.Workspace, error) {
	list, err := a.members.workspaces(ctx, id.User)
	return slices.Clone(list), err
}

// Caller puts an identity into a workspace; "" is the only or default one. A workspace that the
// identity is not a member of answers exactly like one that does not exist:
// core.CodeWorkspaceDenied.
func (a *Access) Caller(ctx context.Context, id core.Identity, workspace string) (core.Caller, error) {
	list, err := a.members.workspaces(ctx, id.User)
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

// MembersChanged forgets what is remembered of a user and the user's workspaces; "" forgets all
// users'. Call it after a change of users, members, roles or names of workspaces; from its return on
// the change counts.
func (a *Access) MembersChanged(userID string) {
	a.gate.Load().forget(userID)
	a.members.forget(userID)
}
