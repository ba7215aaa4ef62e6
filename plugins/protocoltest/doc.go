// Package protocoltest is the conformance kit for what every plugin must do regardless of its kind: start, handshake,
// transport security, health, Info, settings, load and shutdown. The contract is in the comments of
// ropewalk/plugin/v1/plugin.proto.
//
// It starts the executable itself, without the server's plugin host, so that nothing hides what a plugin does. Each
// check starts its own processes and stops them. Lying executables prove that each check works (lies_test.go).
package protocoltest
