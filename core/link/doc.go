// Package link is one MCP connection to one bundle.
//
// It owns the framing of a bundle's standard streams, the transports to remote servers, the
// handshake (or the discovery of the revision that has none), calls with their progress and
// cancellation, lists, subscriptions, and what a bundle sends on its own. The MCP SDK speaks the
// handshake and answers what nobody here does; every other call passes beside it as raw JSON, so
// that nothing a bundle says is lost and nothing is decoded that need not be. One reader sees all
// messages in wire order: a call's notifications are handed over before its result.
//
// The package does not start processes (process), does not decide when to connect again or whom a
// bundle's question concerns (apps) and gives tools no names (tools). It is apart because it is the
// endpoint to the MCP SDK's client side, and because a hostile peer's bytes meet the server here: every
// size, count and wait is bounded.
package link
