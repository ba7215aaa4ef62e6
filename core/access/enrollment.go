package access

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/plugins/auth"
)

// Enrollment is what happens to users of an identity provider when they are seen.
type Enrollment struct {
	Admins     []string // lower-case emails, subjects and groups of admins of the organization
	FirstAdmin bool     // whether the first user becomes an admin when Admins is empty
	Workspace  string   // that users join once; "" for none
	Role       core.Role
}

// Enroller stores what enrollment changes. *store.Store implements it.
type Enroller interface {
	JoinOnce(ctx context.Context, userID, workspace string, role core.Role) (joined bool, err error)
	ClaimFirstAdmin(ctx context.Context, userID string) (claimed bool, err error)
}

// enrollment applies the rules of auth.admins and auth.join. A user is enrolled once per process; the
// store knows what was done before.
type enrollment struct {
	rules Enrollment
	store Enroller

	mu   sync.Mutex
	done map[string]struct{} // user ids
}

func newEnrollment(rules Enrollment, store Enroller) *enrollment {
	return &enrollment{rules: rules, store: store, done: make(map[string]struct{})}
}

// admin reports whether the configuration names the identity as an admin.
func (e *enrollment) admin(said auth.Identity) bool {
	inGroup := slices.ContainsFunc(said.Groups, func(group string) bool { return slices.Contains(e.rules.Admins, group) })
	return inGroup || slices.Contains(e.rules.Admins, said.Subject) ||
		said.Email != "" && slices.Contains(e.rules.Admins, strings.ToLower(said.Email))
}

// enroll applies the rules to a user that was provisioned.
func (a *Access) enroll(ctx context.Context, e *enrollment, user core.User) (core.User, error) {
	e.mu.Lock()
	_, done := e.done[user.ID]
	e.mu.Unlock()
	if done || e.store == nil {
		return user, nil
	}
	if e.rules.FirstAdmin && len(e.rules.Admins) == 0 && !user.OrgRole.Admin() {
		claimed, err := e.store.ClaimFirstAdmin(ctx, user.ID)
		if err != nil {
			return core.User{}, err
		}
		if claimed {
			user.OrgRole = core.RoleAdmin
			a.log.Warn("the first user to log in is now an admin of the organization; set auth.admins to name the admins", "user", user.ID, "email", user.Email)
		}
	}
	if e.rules.Workspace != "" {
		joined, err := e.store.JoinOnce(ctx, user.ID, e.rules.Workspace, e.rules.Role)
		switch {
		case core.CodeOf(err) == core.CodeNotFound:
			a.log.Warn("auth.join: no such workspace", "workspace", e.rules.Workspace)
		case err != nil:
			return core.User{}, err
		case joined:
			a.members.forget(user.ID)
			a.log.Info("user joined a workspace", "user", user.ID, "email", user.Email, "workspace", e.rules.Workspace)
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.done[user.ID] = struct{}{}
	return user, nil
}
