// Package authn reads the credentials of a request under /v1 and wraps handlers with what they require:
// an identity, or membership of a workspace.
//
// It does not own whether credentials are valid or what a user may do: package access and the rights of
// core.Caller decide that.
package authn
