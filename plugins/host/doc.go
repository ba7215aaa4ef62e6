// Package host is the host's side of a connection to a plugin of any kind: the handshake, the
// plugin service (Info, Configure, Validate), and errors translated from gRPC statuses.
//
// It does not start processes; that is the server's plugin host. Authors of plugins do not need it.
package host
