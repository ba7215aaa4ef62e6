// Package source resolves an install request to a bundle and puts its files in place.
//
// It owns the install request and its checks, and the kinds of sources (a directory, an .mcpb file, a registry, an
// npm or PyPI package, a command, the URL of a remote server). It also owns the resolution of a request into a
// Candidate, the package managers that it runs, and the layout of the apps' files in the server's home. It does not
// record or start anything (apps), and does not know how a registry works (plugins/registry).
package source
