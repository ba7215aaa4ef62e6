// Package clients tests the server with clients that other people wrote: a TypeScript and a Python client generated
// from the OpenAPI document, and schemathesis. It also tests the first hour of a new user, with an OpenID provider, a
// browser and the official MCP client.
//
// The package covers everything that is generated from the document. Package httpapi tests the format of single
// endpoints, and test/e2e tests the behavior under load and with faults. All tests are in _test files.
package clients
