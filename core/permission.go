package core

// PermissionKind says what a permission opens.
type PermissionKind string

// The kinds of permissions.
const (
	PermissionRead    PermissionKind = "read"    // a file or directory, to read
	PermissionWrite   PermissionKind = "write"   // a file or directory, to read and to write
	PermissionNet     PermissionKind = "net"     // a port of this machine, as host:port
	PermissionNetOnly PermissionKind = "netOnly" // a destination; with one, all others that are not named are closed
	PermissionEnv     PermissionKind = "env"     // a variable of the server's environment
)

// IsPath reports whether the target of a permission is a path.
func (k PermissionKind) IsPath() bool { return k == PermissionRead || k == PermissionWrite }

// Access is one thing that an app may be permitted to use. Paths are absolute.
type Access struct {
	Kind   PermissionKind `json:"kind"`
	Target string         `json:"target"`
}

// Permission is what a person decided about an Access. It holds for the source that the app had then, on the server
// where it was decided.
type Permission struct {
	Access
	Denied bool   `json:"denied,omitempty"` // a remembered no
	By     string `json:"by,omitempty"`     // User.ID; "" for what was granted before permissions were recorded
	At     string `json:"at"`               // as Timestamp writes it
	Server string `json:"server,omitempty"` // and its state; "" is every server
	Source string `json:"source"`           // Source.Text of the app
	Legacy bool   `json:"legacy,omitempty"` // given in user_config, which may open what only root can read
}

// PermissionChange is what a person decides about an app.
type PermissionChange struct {
	Allow  []Access `json:"allow"`
	Deny   []Access `json:"deny"`   // remembered, so that nobody is asked again
	Revoke []Access `json:"revoke"` // forgets what was decided
}

// The states of a permission.
const (
	PermissionGranted = "granted" // in force
	PermissionDenied  = "denied"  // a remembered no
	PermissionPending = "pending" // of another server, another source or a restored backup, until it is confirmed
	PermissionBlocked = "blocked" // what it names may not be granted any more
)

// PermissionRequest is an Access that the definition of an app suggests.
type PermissionRequest struct {
	Access
	Reason string   `json:"reason"`           // where the definition names it
	Also   *Access  `json:"also,omitempty"`   // a wider choice
	Choice []string `json:"choice,omitempty"` // the kinds that it can be granted as
}

// AppPermissions is what an App shows of its permissions.
type AppPermissions struct {
	Missing []PermissionRequest `json:"missing"` // that nobody has granted or denied
}

// Text is the source in one line.
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
