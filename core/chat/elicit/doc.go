// Package elicit puts the questions of apps to the person of a chat run (MCP elicitation).
//
// It owns the open questions, their replies, and the events about them. Where several servers share the
// state, a reply may reach another server than the one whose run asks: questions are then stored, the
// state decides which reply is the first, and the server that asks polls for it. It does not know how an
// app's question arrives, nor how a person sees it.
package elicit
