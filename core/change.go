package core

// Change tells that another server of the same deployment changed something that is kept. It is a
// hint to look again, not the news itself: it may come twice, or when all is seen already.
type Change struct {
	Kind      ChangeKind
	Workspace string // "" when it is of none
	Name      string // what was changed, as its kind says
}

// ChangeKind says what was changed.
type ChangeKind string

// What is told of. ChangeAll comes after changes may have been missed: look at everything again.
const (
	ChangeApp     ChangeKind = "app"     // an app was installed, uninstalled, started or stopped; Name is its server name
	ChangeMembers ChangeKind = "members" // users, workspaces or members; Name is the User.ID, "" for everybody
	ChangeSetting ChangeKind = "setting" // a setting of the server's own; Name is the setting's
	ChangeAll     ChangeKind = "all"
)
