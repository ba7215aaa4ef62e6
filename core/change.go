package core

// Change is a notice that a peer server changed something in the store. It is a hint to read again, not
// the change itself: it may be repeated, or arrive when the change is known already.
type Change struct {
	Kind      ChangeKind
	Workspace string // "" when the change is in none
	Name      string // what was changed, as its kind says
}

// ChangeKind is the kind of a Change.
type ChangeKind string

// The kinds of changes. ChangeAll follows when notices may have been lost: read everything again.
const (
	ChangeApp     ChangeKind = "app"     // an app was installed, uninstalled, started or stopped; Name is its server name
	ChangeMembers ChangeKind = "members" // users, workspaces or members; Name is the User.ID, "" for everybody
	ChangeSetting ChangeKind = "setting" // a setting of the server's own; Name is the setting's
	ChangePins    ChangeKind = "pins"    // the pinned tools of an app; Name is its server name
	// ChangeToken is the revocation of a token; Name is its SHA-256 in hex.
	ChangeToken ChangeKind = "token"
	// ChangeApproval is a decision on a call that waits; Name is the id of the request.
	ChangeApproval ChangeKind = "approval"
	ChangeAll      ChangeKind = "all"
)
