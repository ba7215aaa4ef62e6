// Package link implements an MCP client connection to one app.
//
// A Link performs the handshake (or server/discover, for the revision without a handshake), makes calls with progress
// and cancellation (call.go), and reads lists (lists.go). It also maintains subscriptions (subscriptions.go), answers
// the app's requests (apprequest.go), and receives its notifications (dispatch.go). The MCP SDK performs the handshake
// and answers requests that have no handler. Calls bypass it: they are sent and received as raw JSON, so every byte
// that an app sends is kept and nothing is decoded unnecessarily. One reader handles all messages in wire order, so a
// call's notifications are delivered before its result.
//
// The transports are separate packages: stdio for processes, remote for remote servers. Both read and write
// messages with package framing.
//
// This package does not start processes (package process does). It does not decide when to reconnect or which
// client should answer a request from the app (package apps), and it does not name tools (package tools). Every
// size, count and wait is bounded, because an app may send anything.
package link
