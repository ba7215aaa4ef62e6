package core

import "strings"

// RequiredRole is the role that an operation requires.
type RequiredRole string

// The roles that operations require.
const (
	AnyRole           RequiredRole = ""
	WorkspaceAdmin    RequiredRole = "workspace admin"
	OrganizationAdmin RequiredRole = "organization admin" // or owner
	BothAdmins        RequiredRole = "workspace admin and organization admin"
	EitherAdmin       RequiredRole = "workspace admin or organization admin" // of the caller's workspace
)

// Requirement is what an operation requires of its caller, whichever way it is asked for: a route of /v1 or a tool.
type Requirement struct {
	Role  RequiredRole
	Flags []string // of these feature flags one must be on; without flags, none
	Login bool     // an API key is not enough
}

// Check returns core.CodeFeatureDisabled while the operation is off, and core.CodeForbidden when c may not do it. what
// names the operation in the message. The feature flag comes first, then the role (docs/api.md 4.6).
func (r Requirement) Check(c Caller, enabled func(flag string) bool, what string) error {
	if !r.Enabled(enabled) {
		return Errorf(CodeFeatureDisabled, "%s is off: the feature flag %s is false", what, strings.Join(r.Flags, " or "))
	}
	if r.Login && c.Issuer == IssuerKey {
		return Errorf(CodeForbidden, "%s needs a login: an API key is not enough", what)
	}
	if r.Permits(c) {
		return nil
	}
	switch {
	case r.Role == WorkspaceAdmin, r.Role == BothAdmins && !c.Workspace.Role.Admin():
		return Errorf(CodeForbidden, "%s needs the role admin in workspace %s", what, c.Workspace.ID)
	case r.Role == EitherAdmin:
		return Errorf(CodeForbidden, "%s needs the role admin in workspace %s, or in the organization", what, c.Workspace.ID)
	}
	return Errorf(CodeForbidden, "%s needs the organization role admin or owner", what)
}

// Permits reports whether c has the role.
func (r Requirement) Permits(c Caller) bool {
	switch r.Role {
	case AnyRole:
	case WorkspaceAdmin:
		return c.Workspace.Role.Admin()
	case OrganizationAdmin:
		return c.User.OrgRole.Admin()
	case BothAdmins:
		return c.Workspace.Role.Admin() && c.User.OrgRole.Admin()
	case EitherAdmin:
		return c.Workspace.Role.Admin() || c.User.OrgRole.Admin()
	}
	return true
}

// Enabled reports whether one of the flags is on, or there is none.
func (r Requirement) Enabled(enabled func(flag string) bool) bool {
	for _, f := range r.Flags {
		if enabled(f) {
			return true
		}
	}
	return len(r.Flags) == 0
}

// MayManageApps says whether c may install, start, stop and remove apps of its workspace: its
// admins may.
func (c Caller) MayManageApps() error {
	if c.Workspace.Role.Admin() {
		return nil
	}
	return Errorf(CodeForbidden, "managing apps needs the role admin in workspace %s", c.Workspace.ID)
}

// MayManageMembers says whether c may see and change the members of a workspace: an admin of the organization may of every
// one, an admin of the caller's workspace of that one alone.
func (c Caller) MayManageMembers(workspace string) error {
	if c.User.OrgRole.Admin() || (c.Workspace.ID == workspace && c.Workspace.Role.Admin()) {
		return nil
	}
	return Errorf(CodeForbidden, "managing the members of workspace %s needs the role admin there, in a request to that workspace, or in the organization", workspace)
}

// MayReachPrivate says whether apps that c installs may be remote servers on loopback and private
// addresses. Like a path, such an address is one of the server's own surroundings.
func (c Caller) MayReachPrivate() bool { return c.User.OrgRole.Admin() }

// MayInstall says whether c may install from a source of the given kind. A path names files of
// the machine the server runs on, so it takes an admin of the organization, not of a workspace.
func (c Caller) MayInstall(kind SourceKind) error {
	if err := c.MayManageApps(); err != nil {
		return err
	}
	if kind != SourceName && kind != SourceURL && !c.User.OrgRole.Admin() {
		if kind == SourcePath {
			return Errorf(CodeForbidden, "installing from a path of the server needs the organization role admin or owner")
		}
		return Errorf(CodeForbidden, "installing from %s needs the organization role admin or owner", kind)
	}
	return nil
}

// MayInstallUnconfined says whether c may install code where the server cannot confine it: it runs with
// the rights of the server there.
func (c Caller) MayInstallUnconfined() bool { return c.User.OrgRole.Admin() }

// MayNameRoots says whether the roots of c's client (MCP, client/roots) reach apps. Apps take a root
// for leave to work there, and on this machine, not the client's: like a path it takes an admin of
// the organization. Apps are notified that anyone else has none.
func (c Caller) MayNameRoots() bool { return c.User.OrgRole.Admin() }
