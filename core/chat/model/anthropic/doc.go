// Package anthropic calls models over Anthropic's Messages API. It is the one door to Anthropic's
// SDK, whose own environment variables, retries and redirects are off: the server's settings alone
// decide where a key goes, and the chat decides when to ask again.
//
// It marks the end of the tools, of the system prompt and of the conversation so far as worth
// caching (prompt caching).
package anthropic
