package core

// PermissionKind is what a permission gives access to.
type PermissionKind string

// The kinds of permissions.
const (
	PermissionRead    PermissionKind = "read"    // read access to a file or directory
	PermissionWrite   PermissionKind = "write"   // read and write access to a file or directory
	PermissionNet     PermissionKind = "net"     // a port on this machine, as host:port
	PermissionNetOnly PermissionKind = "netOnly" // a destination; if there is one, all destinations that are not named are blocked
	PermissionEnv     PermissionKind = "env"     // an environment variable of the server
)

// IsPath reports whether the target of a permission is a path.
func (k PermissionKind) IsPath() bool { return k == PermissionRead || k == PermissionWrite }

// Access is one thing that an app may be permitted to use. Paths are absolute.
type Access struct {
	Kind   PermissionKind `json:"kind"`
	Target string         `json:"target"`
}

// Permission is a person's decision about an Access. It applies to the source that the app had at that time, on the
// server on which it was made.
type Permission struct {
	Access
	Denied bool   `json:"denied,omitempty"` // a recorded refusal
	By     string `json:"by,omitempty"`     // User.ID; "" for grants from before permissions were recorded
	At     string `json:"at"`               // as Timestamp formats it
	Server string `json:"server,omitempty"` // identifies the server and its state; "" means every server
	Source string `json:"source"`           // Source.Text of the app
	Legacy bool   `json:"legacy,omitempty"` // given in user_config, which may give access to files that only root can read
}

// PermissionChange contains a person's decisions about an app.
type PermissionChange struct {
	Allow  []Access `json:"allow,omitempty"`
	Deny   []Access `json:"deny,omitempty"`   // recorded, so that nobody is asked again
	Revoke []Access `json:"revoke,omitempty"` // forgets what was decided
}

// The states of a permission.
const (
	PermissionGranted = "granted" // in effect
	PermissionDenied  = "denied"  // a recorded refusal
	PermissionPending = "pending" // from another server, another source or a restored backup, until somebody confirms it
	PermissionBlocked = "blocked" // its target may no longer be granted
)

// PermissionRequest is an Access that an app's definition appears to need.
type PermissionRequest struct {
	Access
	Reason string   `json:"reason"`           // where the definition names it
	Also   *Access  `json:"also,omitempty"`   // a wider choice
	Choice []string `json:"choice,omitempty"` // the kinds of permission that may be granted
}

// AppPermissions is the part of an app's permissions that App shows.
type AppPermissions struct {
	Missing []PermissionRequest `json:"missing"` // requests that nobody has granted or denied
}

// Text returns the source in one line: kind:ref, then @registry and the command if there are any.
func (s Source) Text() string {
	text := string(s.Kind) + ":" + s.Ref
	if s.Registry != "" {
		text += "@" + s.Registry
	}
	if s.Bin != "" {
		text += " " + s.Bin
	}
	return text
}
