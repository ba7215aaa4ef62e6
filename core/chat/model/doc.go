// Package model defines what the chat needs from a language model, which takes a conversation and streams text and
// tool calls.
//
// It owns the vendor-neutral form of messages, tools and usage, in which conversations are also stored, and the tool
// names and schemas that every provider accepts. It also owns the prices of models, the kinds of provider failures,
// the retries of calls that failed before their first output, and the HTTP client that the providers share. Each
// provider is a subpackage, which is the only one that uses its vendor's API.
//
// The package does not know about conversations or the owners of tools, and it decides nothing about a run.
//
// It is a separate package so that the loop does not use any vendor's types, and a conversation can continue with a
// model from another vendor.
package model
