// Package oidc is the auth adapter for any OpenID provider.
//
// It defines the settings for such a provider. Discovery, keys, tokens and login are implemented in
// plugins/auth/internal/relyingparty, which other adapters use too.
package oidc
