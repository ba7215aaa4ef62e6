// Package relyingparty is the side of OpenID Connect that trusts a provider: it finds the
// provider's documents and keys, checks tokens, and runs the browser login.
//
// It owns everything that adapters of OpenID providers have in common: a guarded HTTP client, the
// discovery orders of RFC 8414 and OpenID Connect Discovery, key rotation with bounded fetches,
// the checks of a token, and authorization code with PKCE. It owns no settings and nothing that
// only one provider does: those are the adapters'. It is apart, and internal, because adapters
// never import each other, and because its API is no promise to third parties.
package relyingparty
