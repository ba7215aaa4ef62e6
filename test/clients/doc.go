// Package clients tests the server with clients that other people's tools make or drive: a TypeScript
// client and a Python client generated from the OpenAPI document, schemathesis, and the first hour of a
// new user with an OpenID provider, a browser and the official MCP client.
//
// It owns what is generated from the document. It does not own the shapes of single endpoints (package
// httpapi) nor the behaviour under load and faults (test/e2e). All tests are in _test files.
package clients
