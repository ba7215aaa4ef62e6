// Package anthropic calls models over Anthropic's Messages API. It is the only package that
// uses Anthropic's SDK. The SDK's environment variables, retries and redirects are off: only the
// server's settings decide where a key is sent, and package model decides when a call is repeated.
//
// It sets cache breakpoints after the tools, the system prompt and the conversation so far (prompt
// caching).
package anthropic
