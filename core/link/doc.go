// Package link is one MCP client connection to one app.
//
// A Link performs the handshake (or server/discover, for the revision without one), makes calls with their
// progress and cancellation (call.go), reads lists (lists.go), keeps subscriptions (subscriptions.go),
// answers the app's requests (apprequest.go), and receives its notifications (dispatch.go). The MCP SDK
// performs the handshake and answers the requests for which there is no handler. Calls do not use it: they
// are sent and received as raw JSON, so that every byte that an app sends is kept and nothing is decoded
// that need not be. One reader handles all messages in wire order, so a call's notifications are delivered
// before its result.
//
// The transports are packages of their own: stdio for processes, remote for servers elsewhere; both read
// and write messages with package framing.
//
// The package does not start processes (package process), does not decide when to connect again or whom a
// request of the app concerns (package apps), and does not name tools (package tools). Every size, count
// and wait is bounded, because an app may send anything.
package link
