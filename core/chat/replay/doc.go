// Package replay turns the stored messages of a conversation into the messages of the next model call.
// It does not read the store, and it does not build the system prompt: both belong to package chat.
package replay
