// Package anthropic calls models over Anthropic's Messages API. It speaks the wire itself: the vendor's SDK
// is much of an executable, and of the time to compile it, for one request.
//
// It sets cache breakpoints after the tools, the system prompt and the conversation so far (prompt
// caching).
package anthropic
