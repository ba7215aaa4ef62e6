package core

// MayManageApps says whether c may install, start, stop and remove apps of its workspace: its
// admins may.
func (c Caller) MayManageApps() error {
	if c.Workspace.Role.Admin() {
		return nil
	}
	return Errorf(CodeForbidden, "managing apps needs the role admin in workspace %s", c.Workspace.ID)
}

// MayAcceptTools says whether c may accept tools of its workspace whose definitions changed: its admins
// may.
func (c Caller) MayAcceptTools() error {
	if c.Workspace.Role.Admin() {
		return nil
	}
	return Errorf(CodeForbidden, "deciding on changed tools needs the role admin in workspace %s", c.Workspace.ID)
}

// MayReadAudit says whether c may read the audit records of a workspace; "" is all that c may read. Admins
// of the organization may read all, admins of a workspace those of theirs.
func (c Caller) MayReadAudit(workspace string) error {
	switch {
	case c.User.OrgRole.Admin():
		return nil
	case !c.Workspace.Role.Admin():
		return Errorf(CodeForbidden, "reading the audit trail needs the role admin in workspace %s, or in the organization", c.Workspace.ID)
	case workspace != "" && workspace != c.Workspace.ID:
		return Errorf(CodeForbidden, "reading the audit trail of another workspace needs the organization role admin or owner")
	}
	return nil
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
