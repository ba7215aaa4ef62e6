// Package server serves an implementation as a plugin. It runs the gRPC services behind the handshake, translates
// errors, recovers panics, and allows no calls to the kind's services before Configure.
//
// Authors call Serve in their contract package, which calls Serve here.
package server
