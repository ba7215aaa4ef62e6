// Package trust decides what of an app may be used after it was installed.
//
// Pins keeps the definitions of an app's tools as they were first seen for a version of its bundle, and
// holds back a tool whose definition changes without a new version until an administrator accepts it.
// Approvals keeps calls that wait for a person. Both are kept in the store, so that all servers of a
// cluster decide alike.
//
// The package does not read lists (apps does), does not make calls (tools does) and does not decide who
// may accept, approve or refuse (the HTTP API does).
package trust
