// Package oidc is the auth adapter for any OpenID provider.
//
// It owns the settings of such a provider. Trusting one (discovery, keys, tokens, login) is the
// work of plugins/auth/internal/relyingparty, which it shares with other adapters without
// meeting them.
package oidc
