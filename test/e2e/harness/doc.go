// Package harness starts the real executable for the end-to-end tests. The tests use it from outside, as users do: over
// HTTP, over MCP, and from the command line.
//
// The harness imports no packages of the server. The tests know only the behavior that docs/api.md describes, and the
// output of the server. Every test has its own server, home and port. The harness looks for leftover processes after
// each server has exited, and again after all tests of a package.
//
// If ROPEWALK_BINARY is set, the tests use that executable, and the harness builds none.
package harness
