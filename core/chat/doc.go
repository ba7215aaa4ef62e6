// Package chat lets people chat with a model that uses a workspace's tools.
//
// It owns the agent loop: the prompt and tools for each model call, the tool calls, the end and the events of a run,
// and the compaction of conversations that are too long. It also owns model selection, the claim of a conversation
// for one run, and conversation titles, attachments, queued messages, delegated tasks and the related system tools.
// Its subpackages own the model providers and prices (model), the skills (skill), and apps' questions to the
// person behind a run (elicit).
//
// A conversation is stored as it progresses. The person's message is stored before the run reports that it has
// started. Each turn of the model, with its tool results, is stored before the next turn starts, and the last one
// before the run reports that it is done. A conversation has at most one run at a time, across all servers that share
// the state.
//
// The package does not store conversations or usage (package store), does not find the app of a tool (package tools),
// and does not depend on HTTP: a run passes its events to a function.
package chat
