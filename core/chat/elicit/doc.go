// Package elicit puts apps' questions to the person behind a chat run (MCP elicitation).
//
// It owns the open questions, their replies, and the related events. If several servers share the state, a reply may
// arrive at a different server than the one whose run asks. Questions are then stored, the store decides which reply
// is the first, and the asking server polls for it. The package does not know how an app's question arrives or how it
// is shown to a person.
package elicit
