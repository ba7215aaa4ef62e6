// Package auth is the contract of an auth adapter, a plugin that verifies bearer tokens and, optionally,
// logs people in through a browser.
//
// It owns the Adapter interface, the optional capabilities Login, Revoker and Sessions, their types, and the
// conversion to gRPC messages. Sessions, cookies, workspaces and the roles inside a workspace belong to
// the server. The built-in adapters are in the folders beneath; authtest is the conformance kit that
// every adapter must pass.
package auth
