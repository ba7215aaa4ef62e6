// Package clients tests the server with clients that other people wrote: a TypeScript and a Python client generated
// from the OpenAPI document, and schemathesis. It also tests a new user's first hour, with an OpenID provider, a
// browser and the official MCP client.
//
// It covers everything that is generated from the document. Package httpapi tests the format of single endpoints, and
// test/e2e tests the behavior under load and with faults. This package contains only tests.
package clients
