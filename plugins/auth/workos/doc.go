// Package workos is the auth adapter for WorkOS AuthKit.
//
// It defines WorkOS's addresses (the AuthKit issuer and its key set), and checks whether a user is a member of
// the configured organization, and with which role. Tokens and browser login are implemented in
// plugins/auth/internal/relyingparty.
//
// Standalone Connect needs no code here. AuthKit sends the browser to the application's login URI with
// external_auth_id. The application authenticates its user and posts to AuthKit's completion API, which returns the URL
// to redirect to. The resulting token is an AuthKit token like any other.
package workos
