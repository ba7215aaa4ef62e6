// Package pluginhost finds, verifies, launches and supervises plugin processes, and hands out the
// contract interfaces of plugins/ in front of them.
//
// It owns which executable a configured adapter means, the check of its sha256 at every start,
// the handshake, deadlines and size limits, and the replacement of a plugin that died or hangs
// while calls wait. It does not own what an adapter does, nor when one is exchanged for another:
// the server's wiring loads the new one, points its users at it, and closes the old one.
//
// The walk of a call: handle (auth.go, sessionstore.go, registry.go) -> slot (waits for a living
// generation, repeats a call that died with it) -> instance (one process) -> gRPC.
package pluginhost
