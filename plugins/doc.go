// Package plugins is what a plugin of any kind needs to be one: Serve, strict configuration
// decoding, the optional powers, and the one table between errors and gRPC codes.
//
// It is a public SDK: a third party imports it with one contract package (auth, sessionstore or
// registry) and nothing else of this repository. It knows nothing of the server, and nothing in
// plugins/ ever imports core/.
package plugins
