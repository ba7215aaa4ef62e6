// Package mcpregistry is the registry that speaks the API of the official MCP Registry, /v0.1: that
// one itself, or any sub-registry with the same API.
//
// It owns reading server.json entries: which of an entry's packages and remotes a server can
// install, which values they need, and whether the entry still stands. Of the packages it offers
// mcpb before npm before pypi, and a remote last; oci, nuget and packages that speak anything but
// stdio cannot be installed.
package mcpregistry
