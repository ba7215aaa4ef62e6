// Package plugins is what the author of a plugin of any kind works with: strict decoding of
// settings, the optional capabilities, and the errors that mean something to the server.
//
// It is a public SDK: a third party imports it together with one contract package (auth,
// sessionstore, registry) and nothing else of this repository. It knows nothing of the server, and
// nothing in plugins/ imports core/. An author calls Serve of the contract package and uses the
// interfaces of capabilities.go, Config.Decode and the errors of errors.go.
//
// The other end of the connection is package plugins/host; how a plugin is served is package
// plugins/server. Authors need neither.
package plugins
