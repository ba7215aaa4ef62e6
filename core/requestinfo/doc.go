// Package requestinfo is what the packages that serve HTTP note about a request while they handle it, for
// the access log and the trace of the request: its route, caller and tool.
//
// It does not log and does not start spans: httpapi does, for every request, and the handlers of httpapi and
// mcphttp fill in what they know.
package requestinfo
