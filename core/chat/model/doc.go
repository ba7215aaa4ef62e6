// Package model says what a language model is to the chat: a conversation goes in, text and the
// calls of tools come out in pieces.
//
// It owns the neutral form of messages, tools and usage, in which conversations are also kept; the
// failures of providers in the chat's words; which tool names and schemas every provider takes;
// the patience with a call that fails before it said anything; and the HTTP client the providers
// share. Beneath it are the providers, each the one door to its vendor's SDK.
//
// It does not know conversations, tools' owners or prices, and it decides nothing about a run.
//
// It is apart so that the loop can be read without a vendor's types, and so that a conversation can
// go on with another vendor's model.
package model
