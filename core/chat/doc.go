// Package chat lets people talk to a model that uses a workspace's tools.
//
// It owns the loop: what a model is told and offered, its calls of tools, when a run is over, and
// the events of a run. It owns what apps ask the person meanwhile, which model is asked, the titles
// of conversations, the delegated tasks, and the system tools that concern it. Beneath it are the
// models (model), what they cost (price) and the skills (skill).
//
// A conversation is kept as it goes: the person's message before the run says that it started,
// each turn of the model with what its tools answered before the next one begins, the last one
// before the run says that it is done. There is one run of a conversation at a time, among all
// servers that share the state.
//
// It does not keep conversations or usage (store), it does not know tools' owners (tools), and it
// knows nothing of HTTP: a run tells its events to a function.
//
// It is apart because everything else of the server works without a model.
package chat
