// Package relyingparty is the relying party's side of OpenID Connect: it finds the provider's documents and
// keys, verifies tokens, and performs the browser login.
//
// It contains everything that adapters for OpenID providers have in common: a guarded HTTP client, discovery (RFC 8414
// and OpenID Connect Discovery), and key rotation with a bounded number of fetches. It also verifies tokens, and
// implements the authorization code flow with PKCE. Settings, and anything specific to one provider, belong to the
// adapters. It is a separate package because adapters never import each other, and internal because its API is not a
// promise to third parties.
package relyingparty
