// Package harness starts the real executable for the end-to-end tests and drives it from outside, like its users: over
// HTTP, over MCP, and from the command line.
//
// It imports no package of the server: the tests know only what docs/api.md promises and what a server prints. Every
// test has its own server, home and port. When a server has exited, and again after all tests of a package, the harness
// looks for processes that are left over.
//
// ROPEWALK_BINARY names an executable to test instead of the one that the harness builds.
package harness
