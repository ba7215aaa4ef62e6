// Package e2e drives the real executable from outside, as its users do: it starts `ropewalk serve`,
// installs real bundles, calls their tools over HTTP and over MCP with the official TypeScript
// clients and from a page in Chromium, kills what runs, and counts the processes that are left.
//
// It owns nothing that a server needs, and imports no room of it: what these tests know is what the
// specification says and what a server prints. Every test has a server, a home and a port of its own.
// The census (census_test.go) is taken whenever a server ends, and once more when all tests have.
//
// ROPEWALK_BINARY names an executable to test instead of the one that is built here.
package e2e
