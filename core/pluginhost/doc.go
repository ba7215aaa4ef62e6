// Package pluginhost finds, verifies, launches and supervises plugin processes, and gives
// out the contract interfaces of plugins/ in front of them.
//
// It owns which executable a configured adapter means, the check of its sha256 at every start,
// the handshake, deadlines and size limits, and the replacement of a plugin that died or hangs
// while calls wait. It does not own what an adapter does, nor the swap of one adapter for
// another on reload: core/server/reload.go starts the new one, points its users at it, and closes the
// old one.
//
// A call goes from the handle (in the file of its kind, such as auth.go) to the slot, which waits for a
// running generation and retries a call whose process died, to the instance (one process), to gRPC.
package pluginhost
