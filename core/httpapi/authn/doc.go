// Package authn reads the credentials of a request under /v1 and determines who sent it, and in which workspace.
//
// It does not decide whether credentials are valid or what a user may do: package access and the rights in core.Caller
// do.
package authn
