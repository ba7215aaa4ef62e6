// Package server wires the packages of the service together.
//
// It owns the order in which they start and stop, and what a reload replaces. It has no behaviour of
// its own beyond that. Only the command imports it.
package server
