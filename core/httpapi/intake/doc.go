// Package intake reads requests from their connections. It checks their framing and bounds the memory that incomplete
// bodies may use.
//
// It does not own what a body means (package httpio) or who may send one (package access).
package intake
