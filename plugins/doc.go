// Package plugins is what a plugin of any kind needs to be one: Serve, strict decoding of
// settings, the optional powers, and the one table between errors and gRPC codes.
//
// It is a public SDK: a third party imports it with one contract package (auth, sessionstore or
// registry) and nothing else of this repository. It knows nothing of the server, and nothing in
// plugins/ ever imports core/. An author meets Serve of the contract package, the interfaces of
// powers.go, Config.Decode and the errors of errors.go; a host meets Handshake, Control and Wrap.
// go-plugin comes in through serve.go alone.
package plugins
