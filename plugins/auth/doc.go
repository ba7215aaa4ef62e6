// Package auth is the contract of an auth adapter: how the server learns who is behind a bearer
// token, and how people log in.
//
// It owns the Adapter interface, the optional capabilities Login and Revoker, their types, and the conversion to gRPC messages. It
// does not own sessions, cookies, workspaces or roles inside a workspace: those are the server's.
// The folders beneath are adapters; authtest holds the conformance kit that each must pass.
package auth
