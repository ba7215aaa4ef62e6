// Package mcpregistry is the registry adapter for the API of the official MCP Registry, /v0.1. It works with that
// registry and any subregistry with the same API.
//
// It owns the interpretation of server.json entries: which of an entry's packages and remotes can be installed, which
// values they need, and whether the entry is still active. It prefers mcpb packages, then npm, then pypi, and a remote
// last. It cannot install oci and nuget packages, or packages that use a transport other than stdio.
package mcpregistry
