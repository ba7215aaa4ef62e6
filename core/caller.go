package core

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"sync"
	"time"
)

// Role is a rank in an organization (owner, admin, member) or in a workspace (admin, member).
type Role string

// The roles.
const (
	RoleOwner  Role = "owner"
	RoleAdmin  Role = "admin"
	RoleMember Role = "member"
)

// Admin reports whether r is owner or admin.
func (r Role) Admin() bool { return r == RoleOwner || r == RoleAdmin }

// User is a person or a program with an account.
type User struct {
	ID          string `json:"id"`
	Email       string `json:"email"`
	DisplayName string `json:"displayName"`
	OrgRole     Role   `json:"orgRole"`

	// AdminBy is what alone makes the user an admin of the organization: an issuer, a space and an entry of auth.admins.
	// It is "" for everybody else, and for admins who are that without auth.admins too.
	AdminBy string `json:"-"`

	// GroupRoles are the workspaces and roles that the groups of the user gave when the identity provider named them last,
	// such as "ws_a:admin ws_b:member" (auth.join).
	GroupRoles string `json:"-"`
}

// Identity is an authenticated user, before a workspace is chosen. Issuer and Subject together are the
// key: a subject is unique only within its issuer.
type Identity struct {
	Issuer  string // the provider's issuer URL; IssuerLocal for API-key and dev-mode callers
	Subject string
	User    User
	Scope   Scope  // of an API key; zero for everyone else
	Granted string // the OAuth scopes of a token, separated by spaces; "" when it names none

	Session string    // the hash of the session at the provider that it belongs to (SessionHash); "" for none
	Issued  time.Time // when the provider says that the token was issued; zero when it does not
	Token   string    // the SHA-256 of a token of an identity provider, in lower-case hex; "" for other credentials
	Since   time.Time // when the verification of that token began; zero for other credentials
}

// Principal names whom an identity acts for: an API key, else a person, whichever identity provider vouches for them.
func (id Identity) Principal() string { return cmp.Or(id.Scope.Key, id.User.ID) }

// Revocation is a subject, one token or one session of an identity provider that must no longer be accepted.
type Revocation struct {
	Issuer  string
	Subject string // every token of this subject; with Session, those of the session and those of none
	Token   string // the SHA-256 of one token, in lower-case hex; "" when something else is meant
	Session string // the SessionHash of one session; "" when something else is meant

	Once    string    // names the message of the provider, which counts once; "" for none
	Expires time.Time // until when Once is remembered
}

// SessionHash is what a session at an identity provider is known by here, "" for none: identifiers are unique
// at their issuer only.
func SessionHash(issuer, session string) string {
	if session == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(issuer + "\n" + session))
	return hex.EncodeToString(sum[:])
}

// IssuerLocal is the issuer of callers without an identity provider: the holder of the API key, and
// every caller in dev mode. They act as the owner of the instance.
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

// ValidWorkspaceID reports whether id has the form ws_<alphanumeric>, with 1 to 64 letters and digits.
func ValidWorkspaceID(id string) bool {
	name, ok := strings.CutPrefix(id, "ws_")
	return ok && name != "" && len(name) <= 64 && !strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9')
	})
}

// Caller is an identity in one workspace it is a member of. Every decision about permissions uses it.
// It is a plain value that may be kept after its request.
type Caller struct {
	Identity
	Workspace Workspace
	View      string // that the address of the request names; "" for none. It narrows what the caller sees, and never widens it
}

// TokenRequest is the request that a token came with. Adapters that check tokens against it get it. It belongs
// to one request.
type TokenRequest struct {
	Method            string
	URL               string // as the client saw it, without its query
	DPoP              string // the header of that name (RFC 9449); "" for none
	ClientCertificate string // the SHA-256 of the client's certificate, base64url without padding; "" for none

	mu     sync.Mutex
	judged map[string]verdict
}

type verdict struct {
	identity Identity
	err      error
}

// HasProof reports whether the request may prove that its sender holds the key of a token.
func (r *TokenRequest) HasProof() bool {
	return r != nil && (r.DPoP != "" || r.ClientCertificate != "")
}

// Judge returns what judge answers about a token, which it asks once: a proof is good for one time, and a request
// may be authenticated in several places.
func (r *TokenRequest) Judge(token string, judge func() (Identity, error)) (Identity, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known, ok := r.judged[token]; ok {
		return known.identity, known.err
	}
	if r.judged == nil {
		r.judged = map[string]verdict{}
	}
	id, err := judge()
	r.judged[token] = verdict{id, err}
	return id, err
}

// Origin is the HTTP request that something is done for, as audit records name it.
type Origin struct{ RequestID, Address string }

type originKey struct{}

// WithOrigin returns ctx with an origin.
func WithOrigin(ctx context.Context, o *Origin) context.Context {
	return context.WithValue(ctx, originKey{}, o)
}

// OriginOf returns the origin of ctx, the zero value when it has none.
func OriginOf(ctx context.Context) Origin {
	if o, _ := ctx.Value(originKey{}).(*Origin); o != nil {
		return *o
	}
	return Origin{}
}

type tokenRequestKey struct{}

// WithTokenRequest returns ctx with a request.
func WithTokenRequest(ctx context.Context, r *TokenRequest) context.Context {
	return context.WithValue(ctx, tokenRequestKey{}, r)
}

// TokenRequestOf returns the request of ctx, nil when it has none.
func TokenRequestOf(ctx context.Context) *TokenRequest {
	r, _ := ctx.Value(tokenRequestKey{}).(*TokenRequest)
	return r
}

// Cookie is one login in a browser. Its token is never stored, only the hash.
type Cookie struct {
	Hash      string // hex sha256 of the token
	Identity  Identity
	KeyPrint  string // fingerprint of the API key it was made with; "" for a login through an identity provider
	ExpiresAt time.Time

	Renewal   string    // encrypted: what is needed to ask the provider again; "" when it cannot be asked
	CheckedAt time.Time // when the provider was asked last
}

// Member is a user in a workspace, with the role there.
type Member struct {
	User User `json:"user"`
	Role Role `json:"role"` // admin or member
}

// WorkspaceInfo is a workspace as those see it who manage all of them.
type WorkspaceInfo struct {
	ID         string    `json:"id"`
	Name       string    `json:"name"`
	PersonalOf string    `json:"personalOf,omitempty"` // User.ID of the one whose personal workspace it is
	Members    int       `json:"members"`
	CreatedAt  time.Time `json:"createdAt"`
}

// SameEmail reports whether two email addresses are the same, neither of them "". The case of ASCII letters does not
// count; that of others does, since some of them fold to ASCII letters.
func SameEmail(a, b string) bool { return a != "" && lowerASCII(a) == lowerASCII(b) }

func lowerASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}, s)
}

// Subject is somebody as an identity provider names them.
type Subject struct {
	Issuer  string `json:"issuer"`
	Subject string `json:"subject"`
}

// KnownUser is a user with what only admins of the organization see.
type KnownUser struct {
	User
	Identities []Subject `json:"identities"` // the first one first
	APIKeys    int       `json:"apiKeys"`
	Suspended  bool      `json:"suspended"` // no configured identity provider knows the user, whose API keys are refused
}

// Issuers returns the issuers that know the user.
func (u KnownUser) Issuers() []string {
	all := make([]string, len(u.Identities))
	for i, s := range u.Identities {
		all[i] = s.Issuer
	}
	return all
}

// Foreseen is what other identity providers mean for the users of a server.
type Foreseen struct {
	Known  int         `json:"known"`  // users whom a provider knows already
	Linked int         `json:"linked"` // users whom a provider will find by their email (auth.sameAs)
	New    []KnownUser `json:"new"`    // users whom no provider will find: they become somebody else when they log in
}

// UsersWithEmail returns the users who have an email and are known to one of the issuers.
func UsersWithEmail(all []KnownUser, email string, issuers []string) (found []KnownUser) {
	if email == "" || len(issuers) == 0 {
		return nil
	}
	for _, u := range all {
		if SameEmail(u.Email, email) && u.KnownTo(issuers...) {
			found = append(found, u)
		}
	}
	return found
}

// KnownTo reports whether one of the issuers knows the user.
func (u KnownUser) KnownTo(issuers ...string) bool {
	return slices.ContainsFunc(u.Issuers(), func(issuer string) bool { return slices.Contains(issuers, issuer) })
}
