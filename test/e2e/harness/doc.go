// Package harness starts the real executable for the end-to-end tests and drives it from outside, as
// its users do: over HTTP, over MCP, and from the command line.
//
// It imports no package of the server: what these tests know is what docs/api.md promises and what a
// server prints. Every test has a server, a home and a port of its own. When a server has exited, and
// once more after all tests of a package, the harness looks for processes that are left.
//
// ROPEWALK_BINARY names an executable to test instead of the one that is built here.
package harness
