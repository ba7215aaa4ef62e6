// Package chat lets people chat with a model that uses a workspace's tools.
//
// It owns the loop: the prompt and the tools of each model call, the tool calls, when a run ends, and the
// events of a run, and what a model gets of a conversation that is too long for it. It selects the model,
// and it owns the titles of conversations, attachments, exports, delegated tasks, and the system tools
// about them. Beneath it are the models (model), their prices (price), the skills (skill), the stored
// messages as a model needs them (replay), the claim of a conversation for one run (claim), and the
// questions of apps to the person of a run (elicit).
//
// A conversation is stored as it goes: the person's message before the run reports that it started, each
// turn of the model with the results of its tools before the next one begins, the last one before the run
// reports that it is done. One run goes on in a conversation at a time, among all servers that share the
// state.
//
// It does not store conversations or usage (package store), find the app of a tool (package tools) or
// depend on HTTP: a run passes its events to a function.
package chat
