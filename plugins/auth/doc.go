// Package auth is the contract for auth adapters, plugins that verify bearer tokens and, optionally, log people in
// through a browser.
//
// It defines the Adapter interface, the optional capabilities Login, RequestVerifier, Revoker and Sessions, their
// types, and the conversion to gRPC messages. Sessions, cookies, workspaces and the roles inside a workspace belong to
// the server. The built-in adapters are in subdirectories; authtest is the conformance kit that every adapter must
// pass.
package auth
