package core

import "strings"

// RequiredRole is the role that an operation requires of its caller.
type RequiredRole string

// The values of RequiredRole.
const (
	AnyRole           RequiredRole = ""
	WorkspaceAdmin    RequiredRole = "workspace admin"
	OrganizationAdmin RequiredRole = "organization admin" // or owner
	BothAdmins        RequiredRole = "workspace admin and organization admin"
	EitherAdmin       RequiredRole = "workspace admin or organization admin" // in the workspace or in the organization
)

// Requirement contains the conditions that the caller of an operation must meet, whether it is called as a /v1 route or
// as a tool.
type Requirement struct {
	Role  RequiredRole
	Flags []string // at least one of these feature flags must be on; empty means that no flag is required
	Login bool     // an API key is not enough
}

// Check returns CodeFeatureDisabled if the operation is off, and CodeForbidden if c may not perform it. what names the
// operation in the message. The feature flag is checked first, then the role (docs/api.md 4.2).
func (r Requirement) Check(c Caller, enabled func(flag string) bool, what string) error {
	if !r.Enabled(enabled) {
		return Errorf(CodeFeatureDisabled, "%s is off because the feature flag %s is false", what, strings.Join(r.Flags, " or "))
	}
	if r.Login && c.Issuer == IssuerKey {
		return Errorf(CodeForbidden, "%s requires a login; an API key is not enough", what)
	}
	if r.Permits(c) {
		return nil
	}
	switch {
	case r.Role == WorkspaceAdmin, r.Role == BothAdmins && !c.Workspace.Role.Admin():
		return Errorf(CodeForbidden, "%s requires the admin role in workspace %s", what, c.Workspace.ID)
	case r.Role == EitherAdmin:
		return Errorf(CodeForbidden, "%s requires the admin role in workspace %s, or in the organization", what, c.Workspace.ID)
	}
	return Errorf(CodeForbidden, "%s requires an organization admin or owner", what)
}

// Permits reports whether c has the required role.
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

// Enabled reports whether one of the flags is on, or no flag is required.
func (r Requirement) Enabled(enabled func(flag string) bool) bool {
	for _, f := range r.Flags {
		if enabled(f) {
			return true
		}
	}
	return len(r.Flags) == 0
}

// MayManageApps returns nil if c may install, start, stop and remove apps of its workspace, which requires an admin
// of the workspace. Otherwise the error is CodeForbidden.
func (c Caller) MayManageApps() error {
	if c.Workspace.Role.Admin() {
		return nil
	}
	return Errorf(CodeForbidden, "managing apps requires the admin role in workspace %s", c.Workspace.ID)
}

// MayManageMembers returns nil if c may see and change the members of a workspace. An admin of the organization may do
// so in every workspace, an admin of c's workspace only in that one. Otherwise the error is CodeForbidden.
func (c Caller) MayManageMembers(workspace string) error {
	if c.User.OrgRole.Admin() || (c.Workspace.ID == workspace && c.Workspace.Role.Admin()) {
		return nil
	}
	return Errorf(CodeForbidden, "managing the members of workspace %s requires the admin role there, in a request to that workspace, or in the organization", workspace)
}

// MayReachPrivate reports whether apps that c installs may be remote servers on loopback and private
// addresses. Like a path, such an address belongs to the server's own environment.
func (c Caller) MayReachPrivate() bool { return c.User.OrgRole.Admin() }

// MayInstall returns nil if c may install from a source of the given kind, and CodeForbidden otherwise. Bundles from a
// registry and remote servers require an admin of the workspace. Everything else names files or runs code on the
// server's machine, so it requires an admin of the organization as well.
func (c Caller) MayInstall(kind SourceKind) error {
	if err := c.MayManageApps(); err != nil {
		return err
	}
	if kind != SourceName && kind != SourceURL && !c.User.OrgRole.Admin() {
		if kind == SourcePath {
			return Errorf(CodeForbidden, "installing from a path on the server requires an organization admin or owner")
		}
		return Errorf(CodeForbidden, "installing from %s requires an organization admin or owner", kind)
	}
	return nil
}

// MayInstallUnconfined reports whether c may install code on a server that cannot confine it, where the code runs
// with the rights of the server.
func (c Caller) MayInstallUnconfined() bool { return c.User.OrgRole.Admin() }

// MayNameRoots reports whether the roots of c's client (MCP, client/roots) are passed to apps. Apps treat a root
// as permission to work there, on the server's machine and not on the client's. Like a path, it therefore
// requires an admin of the organization. For anyone else, apps get an empty list of roots.
func (c Caller) MayNameRoots() bool { return c.User.OrgRole.Admin() }
