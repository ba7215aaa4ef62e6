// Package interact carries the questions that apps ask their clients, and keeps the data of different clients apart.
//
// It owns the routing of a call to an instance (the shared one, or one from the session pool). It owns the requests
// that apps send to clients while calls are in flight, and the translation between MCP revisions (an app's question
// becomes a result, and vice versa). It also owns the calls that are suspended until their client sends its input,
// and the record of what bundles ask for. It does not start instances (apps, instance) and does not decide who may call
// what (tools).
package interact
