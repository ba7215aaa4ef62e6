// Package query reads the query and path parameters of requests under /v1.
//
// It owns their syntax and the wording of the errors. It does not own which parameters a route has:
// the route table of package httpapi lists them.
package query
