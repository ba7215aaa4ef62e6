// Package people owns users, workspaces, members, roles and API keys. It is the one implementation that both the /v1
// routes and the server's own tools (system__manage_users, system__manage_workspaces) call.
//
// The routes and the tools check whether a caller may use this package at all. ManageUsers, ManageMembers and
// ManageWorkspaces state the requirements. The store announces every change, so that other packages drop what they have
// cached about a user.
package people

import (
	"context"

	"github.com/hashicorp/go-hclog"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/config"
)

// Store stores people. *store.Store implements it.
type Store interface {
	Users(ctx context.Context) ([]core.KnownUser, error)
	User(ctx context.Context, id string) (core.User, error) // core.CodeNotFound
	SetOrgRole(ctx context.Context, id string, role core.Role) error
	DeleteUser(ctx context.Context, id string) error
	MergeUsers(ctx context.Context, from, into string) error

	AllWorkspaces(ctx context.Context) ([]core.WorkspaceInfo, error)
	CreateWorkspace(ctx context.Context, name, adminID string) (core.Workspace, error)
	RenameWorkspace(ctx context.Context, id, name string) error
	DeleteWorkspace(ctx context.Context, id string) error
	Members(ctx context.Context, workspace string) ([]core.Member, error)
	PutMember(ctx context.Context, workspace, userID string, role core.Role) error
	DeleteMember(ctx context.Context, workspace, userID string) error

	CreateAPIKey(ctx context.Context, k core.APIKey, hash string) (core.APIKey, error)
	APIKeys(ctx context.Context, workspace, userID string) ([]core.APIKey, error)
	DeleteAPIKey(ctx context.Context, workspace, userID, id string) error
}

// Directory manages the people of a server. It is safe for concurrent use.
type Directory struct {
	store     Store
	providers Providers
	log       hclog.Logger
}

// Providers checks issuers against the configured identity providers. *access.Access implements it.
type Providers interface {
	// Forgotten reports whether none of the issuers belongs to a configured provider.
	Forgotten(ctx context.Context, issuers []string) bool
}

// New returns a Directory of the people in a store.
func New(store Store, providers Providers, log hclog.Logger) *Directory {
	return &Directory{store, providers, log}
}

// ManageUsers returns the requirements for calling the methods that manage users.
func ManageUsers() core.Requirement {
	return core.Requirement{Role: core.OrganizationAdmin, Flags: []string{config.FlagUserManagement}}
}

// ManageMembers returns the requirements for calling the methods that manage members. Caller.MayManageMembers then
// decides for each workspace.
func ManageMembers() core.Requirement {
	return core.Requirement{Role: core.EitherAdmin, Flags: []string{config.FlagWorkspaceManagement}}
}

// ManageWorkspaces returns the requirements for calling the methods that manage workspaces, or the tool for workspaces
// and members.
func ManageWorkspaces() core.Requirement {
	return core.Requirement{Role: core.OrganizationAdmin, Flags: []string{config.FlagWorkspaceManagement}}
}

// MakeKey returns the requirements for calling CreateKey. A key cannot create keys: otherwise it could create its own
// successor before it expires.
func MakeKey() core.Requirement { return core.Requirement{Login: true} }

// UserList lists all users that the server knows.
type UserList struct {
	Users []core.KnownUser `json:"users"`
}

// ChangedUser is a user after a change.
type ChangedUser struct {
	User core.User `json:"user"`
}

// DeletedUser is the result of DeleteUser.
type DeletedUser struct {
	User    string `json:"user"` // the id
	Deleted bool   `json:"deleted"`
}

// Users returns all of the server's users, sorted by name.
func (d *Directory) Users(ctx context.Context) (UserList, error) {
	users, err := d.store.Users(ctx)
	for i := range users {
		users[i].Suspended = d.providers.Forgotten(ctx, users[i].Issuers())
	}
	return UserList{users}, err
}

// Merge moves everything that belongs to one user, including identities, to a second user and removes the first. The
// second keeps their organization role. Only an owner can merge an owner. Callers cannot merge anyone into themselves,
// because they would get the other person's conversations and linked accounts. Errors: core.CodeNotFound for an unknown
// user, core.CodeForbidden for the instance's owner.
func (d *Directory) Merge(ctx context.Context, c core.Caller, from, into string) (ChangedUser, error) {
	if from == "" {
		return ChangedUser{}, missing("from", "the id of the user to remove")
	}
	second, err := d.subject(ctx, c, into, false)
	if err == nil && second.ID == c.User.ID {
		err = core.Errorf(core.CodeForbidden, "you cannot merge another user into yourself, because their conversations are private; ask another admin")
	}
	if err != nil {
		return ChangedUser{}, err
	}
	first, err := d.subject(ctx, c, from, false)
	if err != nil {
		return ChangedUser{}, err
	}
	return ChangedUser{second}, d.store.MergeUsers(ctx, first.ID, second.ID)
}

// SetRole gives a user an organization role; "" leaves the role to the identity provider. Only an owner can change an
// owner or make one. Errors: core.CodeNotFound for an unknown user, core.CodeForbidden for the instance's owner,
// core.CodeInvalidInput for an unknown role.
func (d *Directory) SetRole(ctx context.Context, c core.Caller, id string, role core.Role) (ChangedUser, error) {
	user, err := d.subject(ctx, c, id, role == core.RoleOwner)
	if err != nil {
		return ChangedUser{}, err
	}
	if err := d.store.SetOrgRole(ctx, user.ID, role); err != nil {
		return ChangedUser{}, err
	}
	if role != "" {
		user.OrgRole = role
	}
	return ChangedUser{user}, nil
}

// DeleteUser deletes a user and everything that belongs only to them. Users cannot delete themselves, and only an owner
// can delete an owner. The error is core.CodeNotFound for an unknown user.
func (d *Directory) DeleteUser(ctx context.Context, c core.Caller, id string) (DeletedUser, error) {
	user, err := d.subject(ctx, c, id, false)
	if err != nil {
		return DeletedUser{}, err
	}
	if user.ID == c.User.ID {
		return DeletedUser{}, core.Errorf(core.CodeBadRequest, "you cannot delete yourself; ask another admin")
	}
	return DeletedUser{user.ID, true}, d.store.DeleteUser(ctx, user.ID)
}

// subject returns the user that a change applies to, if c may change that user. becomesOwner is true if the change
// makes the user an owner.
func (d *Directory) subject(ctx context.Context, c core.Caller, id string, becomesOwner bool) (core.User, error) {
	if id == "" {
		return core.User{}, missing("user", "the user's id")
	}
	user, err := d.store.User(ctx, id)
	if err == nil && (becomesOwner || user.OrgRole == core.RoleOwner) && c.User.OrgRole != core.RoleOwner {
		err = core.Errorf(core.CodeForbidden, "changing an owner, or making one, requires an organization owner")
	}
	return user, err
}

func missing(field, what string) error {
	return core.Errorf(core.CodeBadRequest, "%s is missing: %s", field, what)
}
