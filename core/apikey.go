package core

import "time"

// APIKey is a named key for /v1 and /mcp. It acts as the user who made it, in one workspace and with
// one role there. The key itself is shown once and never stored.
type APIKey struct {
	ID         string // key_ and 26 letters and digits
	Name       string
	User       User // who made it
	Workspace  string
	Role       Role // in the workspace: admin or member
	CreatedAt  time.Time
	ExpiresAt  time.Time // zero when it does not expire
	LastUsedAt time.Time // zero when it was not used; updated every few minutes
}

// IssuerKey is the issuer of callers with an APIKey. Their subject is the key's id.
const IssuerKey = "ropewalk:key"

// Scope limits an identity to one workspace and role. The zero Scope does not limit it.
type Scope struct {
	Key       string // the id of the key
	Workspace string
	Role      Role
	UserRole  Role // the role in the organization of the user the key acts as
}
