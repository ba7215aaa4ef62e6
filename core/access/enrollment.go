package access

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/plugins/auth"
)

// Enrollment defines how users of identity providers are enrolled.
type Enrollment struct {
	// Admins lists the admins of the organization: email:ADDRESS, group:NAME or subject:NAME. An entry without a type
	// is an email if it contains an @, and a subject or a group otherwise.
	Admins     []string
	FirstAdmin bool   // whether the first user becomes an admin when Admins is empty
	Workspace  string // the workspace that users join once; "" for none
	Role       core.Role
	Groups     []GroupRole
}

// GroupRole makes the users in a group of the provider members of a workspace, for as long as they are in the group.
type GroupRole struct {
	Group     string
	Workspace string
	Role      core.Role
}

// Enroller stores the results of enrollment. *store.Store implements it.
type Enroller interface {
	JoinOnce(ctx context.Context, userID, workspace string, role core.Role) (joined bool, err error)
	ClaimFirstAdmin(ctx context.Context, userID string) (claimed bool, err error)
	RetainAdmins(ctx context.Context, listed []string) error

	// SetGroupRoles makes a user a member of exactly these workspaces (core.User.GroupRoles), in addition to those that
	// the user joined in another way.
	SetGroupRoles(ctx context.Context, userID, roles string) error
}

// enrollment applies the rules of auth.admins and auth.join. A user is enrolled once per process; the store records
// what has already been done.
type enrollment struct {
	rules Enrollment
	store Enroller

	mu   sync.Mutex
	done map[string]struct{} // user ids
}

// adminBy returns the entry of auth.admins that matches an identity, or "" if there is none.
func (e *enrollment) adminBy(verified auth.Identity) string {
	i := slices.IndexFunc(e.rules.Admins, func(entry string) bool {
		kind, name, _ := strings.Cut(entry, ":")
		switch {
		case kind == "email":
			return core.SameEmail(name, verified.Email)
		case kind == "group":
			return slices.Contains(verified.Groups, name)
		case kind == "subject":
			return name == verified.Subject
		case strings.Contains(entry, "@"):
			return core.SameEmail(entry, verified.Email)
		}
		return entry == verified.Subject || slices.Contains(verified.Groups, entry)
	})
	if i < 0 {
		return ""
	}
	return verified.Issuer + " " + e.rules.Admins[i]
}

// groupRoles returns the roles that an identity's groups grant, in the form of core.User.GroupRoles. If several groups
// grant a role in the same workspace, the highest one applies.
func (e *enrollment) groupRoles(verified auth.Identity) string {
	roles := map[string]core.Role{}
	for _, g := range e.rules.Groups {
		if slices.Contains(verified.Groups, g.Group) && !roles[g.Workspace].Admin() {
			roles[g.Workspace] = g.Role
		}
	}
	var all []string
	for _, workspace := range slices.Sorted(maps.Keys(roles)) {
		all = append(all, workspace+":"+string(roles[workspace]))
	}
	return strings.Join(all, " ")
}

// retained returns a stored user without the admin role if auth.admins no longer grants it. The setting may have
// changed since the user was stored. While servers reload one after another, it also differs between them.
func (g *gate) retained(ctx context.Context, user core.User) (core.User, error) {
	if user.AdminBy == "" {
		return user, nil
	}
	issuer, entry, _ := strings.Cut(user.AdminBy, " ")
	p, err := g.ofIssuer(ctx, issuer)
	if err != nil {
		return core.User{}, err
	}
	if p == nil || !slices.Contains(p.rules.rules.Admins, entry) {
		user.OrgRole, user.AdminBy = core.RoleMember, ""
	}
	return user, nil
}

// RetainAdmins removes the admin role, on all servers, from users whom auth.admins no longer lists. Call it at startup.
func (a *Access) RetainAdmins(ctx context.Context) error {
	if a.enroller == nil {
		return nil
	}
	var listed []string
	for _, p := range a.gate.Load().providers {
		about, err := p.describe(ctx)
		if err != nil {
			return err
		}
		for _, entry := range p.rules.rules.Admins {
			listed = append(listed, about.Issuer+" "+entry)
		}
	}
	return a.enroller.RetainAdmins(ctx, listed)
}

// enroll applies the rules to a provisioned user. groups holds the roles that the user's groups grant.
func (a *Access) enroll(ctx context.Context, e *enrollment, user core.User, groups string) (core.User, error) {
	e.mu.Lock()
	_, done := e.done[user.ID]
	e.mu.Unlock()
	if e.store == nil {
		return user, nil
	}
	if user.GroupRoles != groups {
		if err := e.store.SetGroupRoles(ctx, user.ID, groups); err != nil {
			return core.User{}, err
		}
		a.log.Info("memberships changed to match a user's groups", "user", user.ID, "email", user.Email, "roles", groups)
		user.GroupRoles = groups
	}
	if done {
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
			a.log.Warn("auth.join refers to a workspace that does not exist", "workspace", e.rules.Workspace)
		case err != nil:
			return core.User{}, err
		case joined:
			a.log.Info("user joined a workspace", "user", user.ID, "email", user.Email, "workspace", e.rules.Workspace)
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.done[user.ID] = struct{}{}
	return user, nil
}
