package auth

import (
	"context"
	"encoding/json"
	"time"
)

// Adapter says who a bearer token belongs to. It must be safe for concurrent use.
//
// What must hold, for every method:
//   - The context's deadline is honoured.
//   - plugins.ErrUnavailable means that the adapter cannot tell: never an acceptance and never a
//     refusal, and the server answers 503. plugins.ErrUnauthenticated means that the token is known
//     to be bad: 401.
//   - No token, code or secret of the configuration appears in an error or a log line.
//
// What an Adapter does not do: it does not cache for the server (the server caches what Verify
// returned, until ExpiresAt and 60 s at most), and it grants nothing inside a workspace.
type Adapter interface {
	// Describe says what the adapter is set up for. It answers without asking the provider, so it
	// works while the provider is away.
	Describe(ctx context.Context) (Description, error)

	// Verify checks a token and returns whose it is. It refuses, with plugins.ErrUnauthenticated
	// and a reason fit for the server's log: a bad signature, an algorithm that Describe does not name,
	// a wrong issuer, an audience none of which is in req.Audiences (unless that is empty), a token
	// that is expired, not yet valid or has no expiry, one of another organization where one is
	// configured, and what is no bearer token at all: another form than the expected one, no
	// subject, critical headers, another type than a JWT's, bound to a key of its holder. Clocks
	// may differ by 30 s in both directions. The identity is the token's own: its subject,
	// organization and role; without a role nobody is more than a member. Any text may come as a
	// token, the empty one included.
	Verify(ctx context.Context, req VerifyRequest) (Identity, error)

	// Metadata returns the provider's RFC 8414 authorization-server document, as the provider
	// wrote it. plugins.ErrNotFound when the adapter has no such provider.
	Metadata(ctx context.Context) (json.RawMessage, error)
}

// Login is the optional capability of an adapter that can log a person in through a browser
// (authorization code with PKCE, RFC 7636). The server keeps state, nonce and verifier.
type Login interface {
	// AuthorizeURL returns where to send the browser.
	AuthorizeURL(ctx context.Context, req AuthorizeRequest) (string, error)

	// Exchange trades the code that came back for the identity of the person. The id token is checked
	// as Verify checks a token, for the client id as its audience. A code that the provider refuses,
	// a missing or bad id token, or one whose nonce differs, is plugins.ErrUnauthenticated.
	Exchange(ctx context.Context, req ExchangeRequest) (Identity, error)
}

// Description is what an adapter is set up for.
type Description struct {
	Issuer               string   // the issuer whose tokens it accepts
	AuthorizationServers []string // for the RFC 9728 document; usually the issuer alone
	Audiences            []string // audiences accepted beside the server's own, such as a client id
	Login                bool     // the Login capability is there and configured
	Algorithms           []string // the signature algorithms it accepts; empty means RS256 alone
	Scopes               []string // what a client must ask the provider for; may be empty
}

// VerifyRequest is one token to check.
type VerifyRequest struct {
	Token     string
	Audiences []string // the token must carry one of them; empty means any audience will do

	// The request that the token came with, for tokens that are bound to their holder; empty when
	// unknown.
	Method                  string
	URL                     string            // without query, as the client saw it
	Headers                 map[string]string // those that bind tokens, by lower-case name: "dpop"
	ClientCertificateSHA256 string            // base64url without padding (RFC 8705)
}

// Identity is who a token belongs to. Issuer and Subject are the key and never empty.
type Identity struct {
	Issuer         string
	Subject        string
	Email          string
	DisplayName    string
	OrganizationID string
	OrgRole        string    // "owner", "admin" or "member"; "" counts as member
	Scopes         []string  // as granted; may be empty
	ExpiresAt      time.Time // when the token stops being good; never zero from Verify
	Groups         []string
	Claims         json.RawMessage // what else the token says, one JSON object; may be empty
}

// AuthorizeRequest is the start of a browser login.
type AuthorizeRequest struct {
	RedirectURI   string
	State         string
	Nonce         string
	CodeChallenge string // S256
}

// ExchangeRequest is the end of a browser login.
type ExchangeRequest struct {
	RedirectURI  string
	Code         string
	Nonce        string
	CodeVerifier string
}

// Revoker is the optional capability of an adapter that learns when subjects or tokens stop being
// good.
type Revoker interface {
	// Watch calls revoked for each subject or token that is no longer good, within two seconds of the
	// adapter's learning of it, until the context ends. It returns when it cannot go on.
	Watch(ctx context.Context, revoked func(Revocation) error) error
}

// Revocation is one subject or one token that is no longer good.
type Revocation struct {
	Issuer      string
	Subject     string // all tokens of this subject; "" when one token is meant
	TokenSHA256 string // one token, lower-case hex; "" when a subject is meant
}
