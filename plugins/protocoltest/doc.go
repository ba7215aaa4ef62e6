// Package protocoltest is the conformance kit of what every plugin does whatever its kind: start,
// handshake, transport security, health, Info, settings, load and end (the comments of
// ropewalk/plugin/v1/plugin.proto).
//
// It starts the executable by hand, without the server's plugin host, so that nothing in between
// hides what a plugin does. Each check starts a process of its own and ends it. Each check is proven
// by lying executables (lies_test.go).
package protocoltest
