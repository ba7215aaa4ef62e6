// Package plugins is the SDK for authors of plugins: the decoding of settings, the optional
// capabilities, and the errors that the server acts on.
//
// A plugin imports this package and one contract package (such as auth), and nothing else from this repository. Its main
// function passes an implementation of the contract to Serve of the contract package. The implementation may also
// implement the interfaces in capabilities.go, decode its settings with Config.Decode, and return the errors in
// errors.go.
//
// Nothing in plugins/ imports core/. The server's end of the connection is in package plugins/host, the
// gRPC server of a plugin in package plugins/server; authors need neither.
package plugins
