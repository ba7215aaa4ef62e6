// Package model defines what the chat needs of a language model: it takes a conversation and streams
// text and tool calls.
//
// It owns the vendor-neutral form of messages, tools and usage, in which conversations are also stored;
// the kinds of failure of a provider; the tool names and schemas that every provider accepts; the retries
// of a call that failed before its first output; and the HTTP client that the providers share. Each
// provider is a package beneath it, and the only one that uses its vendor's API.
//
// It does not know conversations, the owners of tools or prices, and it decides nothing about a run.
//
// It is a package of its own so that the loop uses no vendor's types, and a conversation can continue
// with the model of another vendor.
package model
