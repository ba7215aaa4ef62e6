// Package intake reads requests from their connections: it checks how they are framed, and bounds
// the memory that incomplete bodies may take.
//
// It does not own what a body means (package body) or who may send one (package access).
package intake
