package people

import (
	"cmp"
	"context"
	"strings"

	"github.com/ropewalk/ropewalk/core"
)

// WorkspaceList lists all workspaces.
type WorkspaceList struct {
	Workspaces []core.WorkspaceInfo `json:"workspaces"`
}

// CreatedWorkspace is a new workspace as its first admin sees it.
type CreatedWorkspace struct {
	Workspace core.Workspace `json:"workspace"`
}

// RenamedWorkspace is the id of a workspace with its new name.
type RenamedWorkspace struct {
	Workspace string `json:"workspace"`
	Name      string `json:"name"`
}

// DeletedWorkspace is the result of DeleteWorkspace.
type DeletedWorkspace struct {
	Workspace string `json:"workspace"`
	Deleted   bool   `json:"deleted"`
}

// MemberList lists the members of a workspace.
type MemberList struct {
	Workspace string        `json:"workspace"`
	Members   []core.Member `json:"members"`
}

// Membership is a user's role in a workspace.
type Membership struct {
	Workspace string    `json:"workspace"`
	User      string    `json:"user"`
	Role      core.Role `json:"role"`
}

// RemovedMember is the result of RemoveMember.
type RemovedMember struct {
	Workspace string `json:"workspace"`
	User      string `json:"user"`
	Removed   bool   `json:"removed"`
}

// Workspaces returns all workspaces: the default one first, the others sorted by name.
func (d *Directory) Workspaces(ctx context.Context) (WorkspaceList, error) {
	all, err := d.store.AllWorkspaces(ctx)
	return WorkspaceList{all}, err
}

// CreateWorkspace creates a workspace with the caller as its first admin.
func (d *Directory) CreateWorkspace(ctx context.Context, c core.Caller, name string) (CreatedWorkspace, error) {
	if name == "" {
		return CreatedWorkspace{}, missing("name", "the workspace's name")
	}
	if err := core.CheckText("name", name); err != nil {
		return CreatedWorkspace{}, err
	}
	made, err := d.store.CreateWorkspace(ctx, name, c.User.ID)
	return CreatedWorkspace{made}, err
}

// RenameWorkspace renames a workspace. The error is core.CodeNotFound if there is no workspace with this id.
func (d *Directory) RenameWorkspace(ctx context.Context, id, name string) (RenamedWorkspace, error) {
	if err := needWorkspace(id); err != nil {
		return RenamedWorkspace{}, err
	}
	if name == "" {
		return RenamedWorkspace{}, missing("name", "the workspace's new name")
	}
	if err := core.CheckText("name", name); err != nil {
		return RenamedWorkspace{}, err
	}
	return RenamedWorkspace{id, name}, d.store.RenameWorkspace(ctx, id, name)
}

// DeleteWorkspace deletes a workspace that has no apps. The default workspace and personal ones cannot be deleted.
func (d *Directory) DeleteWorkspace(ctx context.Context, id string) (DeletedWorkspace, error) {
	if err := needWorkspace(id); err != nil {
		return DeletedWorkspace{}, err
	}
	return DeletedWorkspace{id, true}, d.store.DeleteWorkspace(ctx, id)
}

// Members returns the members of a workspace, sorted by name.
func (d *Directory) Members(ctx context.Context, workspace string) (MemberList, error) {
	if err := needWorkspace(workspace); err != nil {
		return MemberList{}, err
	}
	members, err := d.store.Members(ctx, workspace)
	return MemberList{workspace, members}, err
}

// PutMember adds a user, given by id or email, to a workspace or changes their role there. The role "" means member.
func (d *Directory) PutMember(ctx context.Context, workspace, user string, role core.Role) (Membership, error) {
	id, err := d.memberID(ctx, workspace, user)
	if err != nil {
		return Membership{}, err
	}
	role = cmp.Or(role, core.RoleMember)
	return Membership{workspace, id, role}, d.store.PutMember(ctx, workspace, id, role)
}

// RemoveMember removes a user, given by id or email, from a workspace.
func (d *Directory) RemoveMember(ctx context.Context, workspace, user string) (RemovedMember, error) {
	id, err := d.memberID(ctx, workspace, user)
	if err != nil {
		return RemovedMember{}, err
	}
	return RemovedMember{workspace, id, true}, d.store.DeleteMember(ctx, workspace, id)
}

func needWorkspace(id string) error {
	if id == "" {
		return missing("workspace", "its id, ws_...")
	}
	return nil
}

// memberID returns the id of a user given by id or email.
func (d *Directory) memberID(ctx context.Context, workspace, user string) (id string, err error) {
	if err := needWorkspace(workspace); err != nil {
		return "", err
	}
	if user == "" {
		return "", missing("user", "an id or an email")
	}
	if !strings.Contains(user, "@") {
		return user, nil
	}
	all, err := d.store.Users(ctx)
	if err != nil {
		return "", err
	}
	for _, u := range all {
		if !core.SameEmail(u.Email, user) {
			continue
		}
		if id != "" {
			return "", core.Errorf(core.CodeBadRequest, "several users have the email %s; give the user's id", user)
		}
		id = u.ID
	}
	if id == "" {
		return "", core.Errorf(core.CodeNotFound, "no user has the email %s; users appear when they first log in", user)
	}
	return id, nil
}
