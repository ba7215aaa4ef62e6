// Package chat lets people chat with a model that uses a workspace's tools.
//
// It owns the loop: what a model is told and offered, its tool calls, when a run ends, and the events of
// a run. It owns which model is asked, the titles of conversations, attachments, exports, delegated tasks,
// and the system tools about them. Beneath it are the models (model), what they cost (price), the skills
// (skill), the claim of a conversation for one run (claim), and the questions of apps to the person of a
// run (elicit).
//
// A conversation is stored as it goes: the person's message before the run reports that it started, each
// turn of the model with the results of its tools before the next one begins, the last one before the run
// reports that it is done. One run goes on in a conversation at a time, among all servers that share the
// state.
//
// It does not store conversations or usage (store), it does not know which app has a tool (tools), and it
// knows nothing of HTTP: a run passes its events to a function.
package chat
