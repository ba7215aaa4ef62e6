// Package anthropic calls models over Anthropic's Messages API. It implements the wire protocol itself, because the
// vendor's SDK would add much to the size and compile time of the executable, for a single request.
//
// It sets cache breakpoints after the tools, the system prompt and the conversation so far (prompt caching).
package anthropic
