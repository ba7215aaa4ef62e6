// Package accounts links people's accounts for remote apps, and provides the tokens for calls to these apps.
//
// It owns the login with an app's authorization server (discovery.go, client.go), in a browser (link.go) or with a
// code on another device (device.go). It also owns the choice of the account for a call (choose.go), the renewal of
// tokens (renew.go), and their revocation when an account is unlinked (revoke.go). It does not own the storage of
// accounts (package store), the requests that carry their tokens (package link/remote), or the pages of the flow
// (package httpapi/accountapi).
package accounts
