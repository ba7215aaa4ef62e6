// Package intake reads requests from their connections. It checks their framing and bounds the memory that incomplete
// bodies may use.
//
// It does not interpret bodies (package httpio) or decide who may send them (package access).
package intake
