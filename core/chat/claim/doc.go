// Package claim makes sure that one run goes on in a conversation at a time, in this server and among all
// servers that share the state.
//
// It owns the claims of this server and their leases: a conversation whose server was killed is free when
// the lease has expired. It does not know what a run does.
package claim
