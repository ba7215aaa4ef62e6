// Package accounts links the accounts that people have at remote apps, and gives the tokens with which the apps are called.
//
// It owns the authorization code flow with an app's authorization server (discovery.go, client.go, link.go), which account
// a call uses (choose.go), the renewal of tokens (renew.go), and their revocation when an account is unlinked (revoke.go).
// It does not own how accounts are stored (package store), the requests that carry their tokens (package link/remote), or
// the pages of the flow (package httpapi/accountapi).
package accounts
