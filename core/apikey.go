package core

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// APIKey is a named key for /v1 and /mcp. It acts as the user who made it, in one workspace and with
// one role there. The key itself is shown once and never stored.
type APIKey struct {
	ID         string // key_ and 26 letters and digits
	Name       string
	User       User     // who made it
	Issuers    []string // of the providers that know the user
	Workspace  string
	Role       Role   // in the workspace: admin or member
	OrgRole    Role   // in the organization: admin, or "" for that of a member
	Accounts   bool   // calls with it use the linked accounts of its user
	View       string // of the workspace, which bounds what requests with it see; "" for everything
	CreatedAt  time.Time
	ExpiresAt  time.Time // zero when it does not expire
	LastUsedAt time.Time // zero when it was not used; updated every few minutes
}

// APIKeyPrefix tells the text of an API key from other credentials.
const APIKeyPrefix = "rwk_"

// NewAPIKey returns the text of a new key, and the hash that it is stored by.
func NewAPIKey() (text Secret, hash string) {
	key := APIKeyPrefix + rand.Text() + rand.Text()
	sum := sha256.Sum256([]byte(key))
	return Secret(key), hex.EncodeToString(sum[:])
}

// IssuerKey is the issuer of callers with an APIKey. Their subject is the key's id.
const IssuerKey = "ropewalk:key"

// Scope limits an identity to one workspace and role. The zero Scope does not limit it.
type Scope struct {
	Key       string // the id of the key
	Workspace string
	Role      Role
	Accounts  bool   // whether the key was made for the linked accounts of its user
	View      string // the view that the key is bound to; "" for none
	OrgRole   Role   // in the organization, as the key states it: admin, or "" for that of a member
	UserRole  Role   // the role in the organization of the user the key acts as
}

// RoleOf is the role in the organization of requests with the key, whose user has a role there now: the key never gives
// more than its user has.
func (s Scope) RoleOf(user Role) Role {
	if s.OrgRole.Admin() && user.Admin() {
		return RoleAdmin
	}
	return RoleMember
}
