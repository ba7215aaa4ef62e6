// Package authn reads the credentials of a request under /v1 and finds out who sends it, in which workspace.
//
// It does not own whether credentials are valid or what a user may do: package access and the rights of
// core.Caller decide that.
package authn
