package core

import "strings"

// Role is a rank in an organization (owner, admin, member) or in a workspace (admin, member).
type Role string

// The roles of contract part 2.
const (
	RoleOwner  Role = "owner"
	RoleAdmin  Role = "admin"
	RoleMember Role = "member"
)

// Admin reports whether r passes the filter of spec 4.10 rule 4(b).
func (r Role) Admin() bool { return r == RoleOwner || r == RoleAdmin }

// User is a person or a program that the server knows.
type User struct {
	ID          string `json:"id"`
	Email       string `json:"email"`
	DisplayName string `json:"displayName"`
	OrgRole     Role   `json:"orgRole"`
}

// Identity is who proved to be calling, before a workspace is chosen. Issuer and Subject together
// are the key: a subject means nothing without the issuer that vouches for it.
type Identity struct {
	Issuer  string // the provider's issuer URL; IssuerLocal for API-key and dev-mode callers
	Subject string
	User    User
}

// IssuerLocal is the issuer of callers that no identity provider vouches for: the holder of the
// API key, and everyone in dev mode. They act as the instance's owner (contract part 2).
const IssuerLocal = "ropewalk:local"

// Owner is the identity of API-key and dev-mode callers.
func Owner() Identity {
	return Identity{Issuer: IssuerLocal, Subject: "owner", User: User{ID: "usr_owner", DisplayName: "Owner", OrgRole: RoleOwner}}
}

// Workspace is one caller's view of a workspace: Role is the caller's own.
type Workspace struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Role Role   `json:"role"`
}

// DefaultWorkspaceID is the workspace that exists from the first start on.
const DefaultWorkspaceID = "ws_default"

// ValidWorkspaceID reports whether id has the form of spec part 2, ws_<alphanumeric>, of 1 to 64
// letters and digits.
func ValidWorkspaceID(id string) bool {
	name, ok := strings.CutPrefix(id, "ws_")
	return ok && name != "" && len(name) <= 64 && !strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9')
	})
}

// Caller is an identity in one workspace it is a member of: what every room below the doors
// decides by. It is a value of plain strings, safe to keep after the request that made it.
type Caller struct {
	Identity
	Workspace Workspace
}
