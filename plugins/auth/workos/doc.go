// Package workos is the auth adapter for WorkOS AuthKit.
//
// It owns WorkOS' addresses (the AuthKit issuer and its key set), and the question whether a user
// is a member of the configured organization, and in which role. Checking tokens and browser
// login are the work of plugins/auth/internal/relyingparty.
//
// Standalone connect needs no code here: AuthKit sends the browser to the application's login URI
// with external_auth_id, the application authenticates its user and posts to AuthKit's completion
// API, which answers with the redirect. The token that comes out is an AuthKit token like any
// other.
package workos
