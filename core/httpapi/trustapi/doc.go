// Package trustapi holds the handlers of decisions of people: on tools whose definitions changed, and on calls
// that wait.
//
// It checks bodies and rights. What a decision does is decided by package trust.
package trustapi
