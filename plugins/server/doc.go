// Package server serves an implementation as a plugin: the gRPC services behind the handshake,
// translated errors, recovered panics, and no call of the kind's services before Configure.
//
// Authors call Serve of their contract package, which calls Serve here.
package server
