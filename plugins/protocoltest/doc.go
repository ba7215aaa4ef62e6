// Package protocoltest is the conformance kit for what every plugin must do regardless of its kind: start,
// handshake, transport security, health, Info, settings, load and shutdown (the comments in
// ropewalk/plugin/v1/plugin.proto).
//
// It starts the executable by hand, without the server's plugin host, so that nothing hides what a plugin does.
// Each check starts its own process and ends it. Each check is proven by lying executables (lies_test.go).
package protocoltest
