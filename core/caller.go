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

	// AdminBy is set only if the user is an admin of the organization solely because of auth.admins. Its form is "<issuer> <entry>", where entry
	// is the auth.admins entry that matched. It is "" for everybody else, including those who would be admins anyway.
	AdminBy string `json:"-"`

	// GroupRoles contains the workspaces and roles that followed from the groups last reported by the identity provider,
	// such as "ws_a:admin ws_b:member" (auth.join).
	GroupRoles string `json:"-"`

	// Groups contains the user's groups as last reported by the identity provider, one per line (GroupList).
	Groups string `json:"-"`
}

// GroupList returns groups in the format of User.Groups: sorted, and without names that are not PlainText, because nothing can be
// bound to those.
func GroupList(groups []string) string {
	names := slices.DeleteFunc(slices.Clone(groups), func(name string) bool { return name == "" || name != PlainText(name) })
	slices.Sort(names)
	return strings.Join(slices.Compact(names), "\n")
}

// Identity is an authenticated user, before a workspace is chosen. Issuer and Subject together are the
// key: a subject is unique only within its issuer.
type Identity struct {
	Issuer  string // the provider's issuer URL; IssuerLocal for SERVICE_API_KEY and dev mode; IssuerKey for API keys
	Subject string
	User    User
	Scope   Scope // the API key's scope; zero for everyone else

	GroupsUnknown bool // for Provision: the provider did not report the user's groups, so those that it last reported still apply

	Granted string // the OAuth scopes of a token, separated by spaces; "" if it has none

	Session string    // the hash of the provider's session that it belongs to (SessionHash); "" for none
	Issued  time.Time // when the token was issued, according to the provider; zero if unknown
	Token   string    // the SHA-256 of an identity provider's token, in lower-case hex; "" for other credentials
	Since   time.Time // when the verification of that token started; zero for other credentials
	Bearer  Secret    // the token itself, for AuthExchange only: it never reaches an app
}

// Principal returns the id of the API key that an identity uses, or else the user's id, whichever identity provider
// authenticated the user.
func (id Identity) Principal() string { return cmp.Or(id.Scope.Key, id.User.ID) }

// Revocation identifies a subject, a token or a session of an identity provider that must no longer be accepted.
type Revocation struct {
	Issuer  string
	Subject string // every token of this subject; with Session, only its tokens from that session or without a session
	Token   string // the SHA-256 of one token, in lower-case hex; "" if the revocation is not about a token
	Session string // the SessionHash of one session; "" if the revocation is not about a session

	Once    string    // identifies the provider's message, which is accepted only once; "" for none
	Expires time.Time // how long Once is remembered
}

// SessionHash returns the SHA-256 in hex that identifies an identity provider's session here, or "" for no session. It
// includes the issuer because session ids are unique only within their issuer.
func SessionHash(issuer, session string) string {
	if session == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(issuer + "\n" + session))
	return hex.EncodeToString(sum[:])
}

// IssuerLocal is the issuer of callers without an identity provider: anyone with SERVICE_API_KEY, and
// every caller in dev mode. They act as the owner of the instance.
const IssuerLocal = "ropewalk:local"

// Owner returns the identity of callers with SERVICE_API_KEY and of callers in dev mode.
func Owner() Identity {
	return Identity{Issuer: IssuerLocal, Subject: "owner", User: User{ID: "usr_owner", DisplayName: "Owner", OrgRole: RoleOwner}}
}

// Workspace is one caller's view of a workspace: Role is the caller's own.
type Workspace struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Role Role   `json:"role"`
}

// DefaultWorkspaceID is the id of the workspace that the first start creates.
const DefaultWorkspaceID = "ws_default"

// ValidWorkspaceID reports whether id has the form ws_<alphanumeric>, with 1 to 64 letters and digits.
func ValidWorkspaceID(id string) bool {
	name, ok := strings.CutPrefix(id, "ws_")
	return ok && name != "" && len(name) <= 64 && !strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9')
	})
}

// Caller is an identity in a workspace that it is a member of. Every permission decision uses it.
// It is a plain value that may be kept after the request.
type Caller struct {
	Identity
	Workspace Workspace
	View      string // from the request's address; "" for none. It only narrows what the caller sees
}

// Outranks reports whether c has a role, in the organization or in the workspace, that after no longer has.
func (c Caller) Outranks(after Caller) bool {
	above := func(before, after Role) bool {
		return before.Admin() && !after.Admin() || before == RoleOwner && after != RoleOwner
	}
	return above(c.User.OrgRole, after.User.OrgRole) || above(c.Workspace.Role, after.Workspace.Role)
}

// TokenRequest describes the HTTP request that carried a token, for adapters that check tokens against it. It
// belongs to that one request.
type TokenRequest struct {
	Method            string
	URL               string // as the client sent it, without the query
	DPoP              string // the DPoP header (RFC 9449); "" for none
	ClientCertificate string // the SHA-256 of the client's certificate, base64url without padding; "" for none

	mu     sync.Mutex
	judged map[string]verdict
}

type verdict struct {
	identity Identity
	err      error
}

// HasProof reports whether the request contains something that can prove that its sender has a token's key.
func (r *TokenRequest) HasProof() bool {
	return r != nil && (r.DPoP != "" || r.ClientCertificate != "")
}

// Judge returns the result of judge for a token, and calls judge once per token, because a proof can be used only once, but a
// request may be authenticated in several places.
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

// Origin identifies the HTTP request that caused an action in audit records.
type Origin struct{ RequestID, Address string }

type originKey struct{}

// WithOrigin returns ctx with an origin.
func WithOrigin(ctx context.Context, o *Origin) context.Context {
	return context.WithValue(ctx, originKey{}, o)
}

// OriginOf returns the origin in ctx, or the zero value.
func OriginOf(ctx context.Context) Origin {
	if o, _ := ctx.Value(originKey{}).(*Origin); o != nil {
		return *o
	}
	return Origin{}
}

type tokenRequestKey struct{}

// WithTokenRequest returns ctx with a token request.
func WithTokenRequest(ctx context.Context, r *TokenRequest) context.Context {
	return context.WithValue(ctx, tokenRequestKey{}, r)
}

// TokenRequestOf returns the token request in ctx, or nil.
func TokenRequestOf(ctx context.Context) *TokenRequest {
	r, _ := ctx.Value(tokenRequestKey{}).(*TokenRequest)
	return r
}

// Cookie is one login in a browser. The token is never stored, only its hash.
type Cookie struct {
	Hash      string // hex sha256 of the token
	Identity  Identity
	KeyPrint  string // fingerprint of the SERVICE_API_KEY in effect at the login; "" if none was
	ExpiresAt time.Time

	Renewal   string    // encrypted; what is needed to check the login with the provider again; "" if that is impossible
	CheckedAt time.Time // when the login was last checked with the provider
}

// Member is a user in a workspace, with their role there.
type Member struct {
	User User `json:"user"`
	Role Role `json:"role"` // admin or member
}

// WorkspaceInfo is a workspace as admins of the organization see it.
type WorkspaceInfo struct {
	ID         string    `json:"id"`
	Name       string    `json:"name"`
	PersonalOf string    `json:"personalOf,omitempty"` // User.ID of its user, if it is a personal workspace
	Members    int       `json:"members"`
	CreatedAt  time.Time `json:"createdAt"`
}

// SameEmail reports whether two email addresses are equal and not "". It ignores case, but only of ASCII letters,
// because some other letters fold to ASCII ones.
func SameEmail(a, b string) bool { return a != "" && lowerASCII(a) == lowerASCII(b) }

func lowerASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}, s)
}

// Subject identifies a user at an identity provider.
type Subject struct {
	Issuer  string `json:"issuer"`
	Subject string `json:"subject"`
}

// KnownUser is a user, with details that only admins of the organization see.
type KnownUser struct {
	User
	Identities []Subject `json:"identities"` // oldest first
	APIKeys    int       `json:"apiKeys"`
	Suspended  bool      `json:"suspended"` // no configured identity provider recognizes the user, so the user's API keys are refused
}

// Issuers returns the issuers that recognize the user.
func (u KnownUser) Issuers() []string {
	all := make([]string, len(u.Identities))
	for i, s := range u.Identities {
		all[i] = s.Issuer
	}
	return all
}

// Forecast predicts what a change to the identity providers means for a server's users.
type Forecast struct {
	Known  int         `json:"known"`  // users whom a provider already recognizes
	Linked int         `json:"linked"` // users whom a provider will find by their email (auth.sameAs)
	New    []KnownUser `json:"new"`    // users whom no provider will find: a login creates a new user for them
}

// UsersWithEmail returns the users who have the email and are known to one of the issuers.
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

// KnownTo reports whether one of the issuers recognizes the user.
func (u KnownUser) KnownTo(issuers ...string) bool {
	return slices.ContainsFunc(u.Issuers(), func(issuer string) bool { return slices.Contains(issuers, issuer) })
}
