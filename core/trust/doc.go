// Package trust decides which parts of an installed app may be used.
//
// Pins keeps the definitions of an app's tools as first seen for a version of its bundle. It holds back a tool whose
// definition changes without a new version until an administrator accepts it. Approvals keeps the calls that wait for a
// person's approval. Both are stored, so that all servers of a cluster make the same decisions.
//
// The package does not read lists (apps does) or make calls (tools does). It does not decide who may accept,
// approve or refuse (the HTTP API does).
package trust
