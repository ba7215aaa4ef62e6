package auth

import (
	"context"
	"encoding/json"
	"time"

	"github.com/ropewalk/ropewalk/plugins"
)

// Adapter identifies the owner of a bearer token. It must be safe for concurrent use.
//
// Every method must follow these rules:
//   - Calls are concurrent, each with its own deadline, which the adapter must honor. A call whose deadline passes
//     must not end the others.
//   - plugins.ErrUnauthenticated means that the token is known to be invalid; the server responds with 401.
//     plugins.ErrUnavailable means that the adapter cannot decide, for example because the provider is
//     unavailable; the server responds with 503. Never return another error, or an identity, in that case.
//   - No token, code or configured secret appears in an error or a log line, nor in anything else that is printed.
//
// An Adapter need not cache: the server caches the result of Verify until ExpiresAt, but for at most 60 s. An Adapter
// grants nothing inside a workspace.
type Adapter interface {
	// Describe returns the part of the adapter's configuration that the server needs. It does not contact the provider,
	// so that it works while the provider is unavailable, and it always returns the same result.
	Describe(ctx context.Context) (Description, error)

	// Verify checks a token and returns its owner. It returns plugins.ErrUnauthenticated, with a reason for the
	// server's log, for
	//   - a bad signature, or an algorithm that Describe does not name,
	//   - a wrong issuer, or a token without a subject,
	//   - audiences that do not include any in req.Audiences (unless that is empty),
	//   - a token that has expired, is not yet valid or has no expiry,
	//   - a token from another organization, if the settings name one,
	//   - anything that is not a bearer token: text in a form other than the expected one, critical headers, a type
	//     other than JWT, a token bound to a key (unless the request proves possession of that key), or text that
	//     differs from a valid token in any character.
	//
	// Names, identifiers and URLs are compared byte by byte. exp must be a number of seconds, and so must nbf
	// and iat if they are present. Clocks may differ by 30 s in both directions. The subject, organization
	// and role of the identity come from this token alone, never from earlier tokens. Without a role in the
	// token, the person is a member. The server passes on any text that a client sends as a token, including
	// an empty one.
	Verify(ctx context.Context, req VerifyRequest) (Identity, error)

	// Metadata returns the provider's RFC 8414 authorization server metadata, byte for byte. The error is
	// plugins.ErrNotFound if the adapter has no such provider.
	Metadata(ctx context.Context) (json.RawMessage, error)
}

// Login is the optional capability of an adapter that can log people in through a browser (authorization code flow with
// PKCE, RFC 7636). The server keeps the state, nonce and verifier.
type Login interface {
	// AuthorizeURL returns the URL to redirect the browser to.
	AuthorizeURL(ctx context.Context, req AuthorizeRequest) (string, error)

	// Exchange trades the code from the redirect for the person's identity. It verifies the id token as Verify verifies
	// a token, with the client id as its audience; the identity comes from the id token. It returns
	// plugins.ErrUnauthenticated if the provider rejects the code, or if the id token is missing or invalid, has a
	// different nonce, or was issued to another client (azp). UserInfo is used only if it is about the same subject,
	// and it never supplies a role.
	Exchange(ctx context.Context, req ExchangeRequest) (Identity, error)
}

// Description is the part of an adapter's configuration that the server needs.
type Description struct {
	Issuer               string   // the issuer whose tokens it accepts
	AuthorizationServers []string // for the RFC 9728 document; usually only the issuer
	Audiences            []string // audiences accepted in addition to the server's own, such as a client id
	Login                bool     // the adapter has the Login capability, and it is configured
	Algorithms           []string // the signature algorithms it accepts; empty means RS256 only
	Scopes               []string // the scopes that a client must request from the provider; may be empty
}

// VerifyRequest is one token to check.
type VerifyRequest struct {
	Token     string
	Audiences []string // the token must be for one of them; empty accepts any audience

	// The request that the token came with, for a RequestVerifier. Empty if unknown, and for other adapters.
	Method                  string
	URL                     string            // without the query, as the client saw it
	Headers                 map[string]string // only headers that bind tokens, by lower-case name: "dpop"
	ClientCertificateSHA256 string            // base64url without padding (RFC 8705)
}

// Identity is the owner of a token. Issuer and Subject together identify a person and are never empty.
type Identity struct {
	Issuer         string
	Subject        string
	Email          string // only if it is verified; "" otherwise
	DisplayName    string
	OrganizationID string
	OrgRole        string          // "owner", "admin" or "member"; "" means member
	Scopes         []string        // the granted scopes; may be empty
	ExpiresAt      time.Time       // when the token expires; never zero from Verify
	Groups         []string        // at the provider; nil if the token does not name them, empty if there are none
	Claims         json.RawMessage // the other claims of the token, one JSON object; may be empty
	SessionID      string          // the session at the provider that logout tokens name, such as the sid claim; may be empty
	Renewal        plugins.Secret  // for a login: what CheckSession needs; "" if the provider offers no way to check it
}

// AuthorizeRequest is the start of a browser login.
type AuthorizeRequest struct {
	RedirectURI   string
	State         string
	Nonce         string
	CodeChallenge string // method S256
}

// ExchangeRequest is the end of a browser login.
type ExchangeRequest struct {
	RedirectURI  string
	Code         string
	Nonce        string
	CodeVerifier string
}

// RequestVerifier is the optional capability of an adapter whose tokens may be bound to their holder. It gets the
// request with each token. Verify then accepts a token bound to a key only if the request proves that the sender has
// the key. The proof is either a DPoP proof (RFC 9449) for the method, the URL and the token, or the client
// certificate that the token names (RFC 8705). A DPoP proof must not have been used before. The server does not cache
// verdicts about requests with a proof.
type RequestVerifier interface {
	// VerifiesRequests does nothing: an adapter has the capability if it has this method.
	VerifiesRequests()
}

// Revoker is the optional capability of an adapter that learns of revoked subjects or tokens.
type Revoker interface {
	// Watch calls revoked for each revoked subject or token, within two seconds after the adapter learns of the
	// revocation, until the context ends. It returns earlier only if it fails.
	Watch(ctx context.Context, revoked func(Revocation) error) error
}

// Revocation is a subject, or a single token, that must no longer be accepted.
type Revocation struct {
	Issuer      string
	Subject     string // all tokens of this subject; "" if only one token is revoked
	TokenSHA256 string // one token, in lower-case hex; "" if a subject is revoked
}

// Sessions is the optional capability of an adapter that can recheck a login with the provider, and verify the
// provider's logout tokens.
type Sessions interface {
	// CheckSession asks the provider whether the login that a renewal belongs to is still valid. The returned identity
	// contains the next renewal. A renewal can be used only once, except that it can be used again after
	// plugins.ErrUnavailable. It is valid in every process with the same settings. An identity without ExpiresAt
	// confirms the login without new information about the person.
	//
	// plugins.ErrUnauthenticated ends the login: the provider rejects it, it is now about another subject, its new id
	// token is bad, or the provider no longer has the key that signed it. plugins.ErrUnavailable means that the
	// provider could not be asked.
	CheckSession(ctx context.Context, req SessionCheck) (Identity, error)

	// VerifyLogout verifies a logout token (OpenID Connect Back-Channel Logout 1.0 section 2.6). It does not check
	// whether the token was used before. The error is plugins.ErrUnauthenticated for a bad signature; another issuer or
	// audience; a token that has expired or was issued in the future; a missing iat, exp, jti or logout event; a nonce;
	// neither a subject nor a session; and anything that is not a logout token.
	VerifyLogout(ctx context.Context, token string) (Logout, error)
}

// SessionCheck is a login to recheck with the provider.
type SessionCheck struct {
	Renewal plugins.Secret // Identity.Renewal of the login or of its last check
	Subject string
}

// Logout is what the provider has ended: a session or, without one, all sessions of the subject.
type Logout struct {
	Issuer    string
	Subject   string // may be empty if SessionID is not
	SessionID string // may be empty if Subject is not
	TokenID   string // jti
	ExpiresAt time.Time
}
