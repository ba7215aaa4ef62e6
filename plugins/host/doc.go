// Package host is the host's side of a connection to a plugin of any kind: the handshake, the
// plugin service (Info, Configure, Validate), and errors translated from gRPC statuses.
//
// It does not start processes; the server's plugin host does. Plugin authors do not need it.
package host
