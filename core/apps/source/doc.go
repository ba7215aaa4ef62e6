// Package source finds out where an app comes from and puts its files in place.
//
// It owns the install request with its checks, the kinds of sources (a directory, an .mcpb file, a
// registry, an npm or PyPI package, the URL of a remote server), the resolution of a request into a
// Candidate, the installers that are run for packages, and where the files of apps lie in the
// server's home. It does not record or start anything (apps), and does not know what a registry is
// made of (plugins/registry).
package source
