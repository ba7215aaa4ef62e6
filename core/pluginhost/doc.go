// Package pluginhost finds, verifies, launches and supervises plugin processes, and provides the contract
// interfaces of plugins/ on top of them.
//
// It decides which executable a configured adapter refers to. It checks its sha256 at every start, performs the
// handshake, enforces deadlines and size limits, and replaces a plugin that died or hangs while calls wait. It
// does not know what an adapter does. Nor does it swap one adapter for another on reload: core/server/reload.go
// starts the new one, directs its users to it, and closes the old one.
//
// A call goes from the handle (in the file of its kind, such as auth.go) to the slot, then to the instance (one
// process), and then to gRPC. The slot waits for a running generation, and retries a call if its process dies.
package pluginhost
