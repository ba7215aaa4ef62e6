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
//   - "I cannot tell" is plugins.ErrUnavailable, never an acceptance and never a refusal: the
//     server then answers 503. "I know it is bad" is plugins.ErrUnauthenticated: 401.
//   - No token, and no secret of the configuration, appears in an error or a log line.
//
// What an Adapter does not do: it does not cache for the server (the server caches what Verify
// returned, until ExpiresAt and 60 s at most), and it grants nothing inside a workspace.
type Adapter interface {
	// Describe says what the adapter is set up for. It answers without asking the provider, so it
	// works while the provider is away.
	Describe(ctx context.Context) (Description, error)

	// Verify checks a token and returns whose it is. It refuses, with plugins.ErrUnauthenticated
	// and a reason fit for the server's log: a bad signature, any algorithm but the expected one,
	// a wrong issuer, an audience none of which is in req.Audiences (unless that is empty), a token
	// that is expired, not yet valid or has no expiry, one of another organization where one is
	// configured, and what is no bearer token at all: another form than the expected one, no
	// subject, critical headers, another type than a JWT's, bound to a key of its holder. Clocks
	// may differ by 30 s. Any text may come as a token, the empty one included.
	Verify(ctx context.Context, req VerifyRequest) (Identity, error)

	// Metadata returns the provider's RFC 8414 authorization-server document, as the provider
	// wrote it. plugins.ErrNotFound when the adapter has no such provider.
	Metadata(ctx context.Context) (json.RawMessage, error)
}

// Login is the optional power of an adapter that can log a person in through a browser
// (authorization code with PKCE, RFC 7636). The server keeps state, nonce and verifier.
type Login interface {
	// AuthorizeURL returns where to send the browser.
	AuthorizeURL(ctx context.Context, req AuthorizeRequest) (string, error)

	// Exchange trades the code that came back for the identity of the person. A code that the
	// provider refuses, or an id token whose nonce differs, is plugins.ErrUnauthenticated.
	Exchange(ctx context.Context, req ExchangeRequest) (Identity, error)
}

// Description is what an adapter is set up for.
type Description struct {
	Issuer               string   // the issuer whose tokens it accepts
	AuthorizationServers []string // for the RFC 9728 document; usually the issuer alone
	Audiences            []string // audiences accepted beside the server's own, such as a client id
	Login                bool     // the Login power is there and configured
}

// VerifyRequest is one token to check.
type VerifyRequest struct {
	Token     string
	Audiences []string // the token must carry one of them; empty means any audience will do
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
