package core

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// APIKey is a named key for /v1 and /mcp. It acts as the user who created it, in one workspace and with
// one role there. The text of the key is shown once and never stored.
type APIKey struct {
	ID         string // key_ and 26 letters and digits
	Name       string
	User       User     // who created it
	Issuers    []string // the providers that recognize the user
	Workspace  string
	Role       Role   // in the workspace: admin or member
	OrgRole    Role   // in the organization: admin, or "" for member
	Accounts   bool   // calls made with the key use the linked accounts of its user
	View       string // the view that limits what requests with the key see; "" for no limit
	Surface    string // how tools are listed to clients with the key that do not choose; "" leaves it open
	CreatedAt  time.Time
	ExpiresAt  time.Time // zero if it does not expire
	LastUsedAt time.Time // zero if it was never used; updated at most every few minutes
}

// APIKeyPrefix distinguishes the text of an API key from other credentials.
const APIKeyPrefix = "rwk_"

// NewAPIKey returns the text of a new key, and the hash under which it is stored (SHA-256, in lower-case hex).
func NewAPIKey() (text Secret, hash string) {
	key := APIKeyPrefix + rand.Text() + rand.Text()
	sum := sha256.Sum256([]byte(key))
	return Secret(key), hex.EncodeToString(sum[:])
}

// IssuerKey is the issuer of callers who use an APIKey. Their subject is the key's id.
const IssuerKey = "ropewalk:key"

// Scope limits an identity to one workspace and role. The zero Scope does not limit it.
type Scope struct {
	Key       string // the id of the key
	Workspace string
	Role      Role
	Accounts  bool   // whether the key may use the linked accounts of its user
	View      string // the view that the key is bound to; "" for none
	Surface   string // how tools are listed to clients that do not choose; "" leaves it open
	OrgRole   Role   // in the organization, as the key states it: admin, or "" for member
	UserRole  Role   // the organization role of the user that the key acts as
}

// RoleOf returns the organization role of requests made with the key. user is the current organization role of the
// key's user, because a key never grants more than its user has.
func (s Scope) RoleOf(user Role) Role {
	if s.OrgRole.Admin() && user.Admin() {
		return RoleAdmin
	}
	return RoleMember
}
