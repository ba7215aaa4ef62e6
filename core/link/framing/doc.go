// Package framing reads and writes the JSON-RPC 2.0 messages exchanged with an app, without decoding their
// contents.
//
// It splits streams into lines (LineReader) and server-sent events (EventReader) of bounded size, splits
// messages into their members (Envelope), prepares the params of requests (Request), and finds the call that a
// damaged message answers (CallID).
//
// It opens no connections (packages stdio and remote do) and does not track calls (package link does). It is a
// separate package because both transports and the link read messages.
package framing
