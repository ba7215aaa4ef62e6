// Package clients tests the server with other people's clients: a TypeScript client and a Python client
// generated from the OpenAPI document, and schemathesis. It also tests a new user's first hour with an OpenID
// provider, a browser and the official MCP client.
//
// It covers everything that is generated from the document. The format of single endpoints is tested in package
// httpapi, and the behavior under load and with faults in test/e2e. All tests are in _test files.
package clients
