// Package interact carries what apps ask their clients, and keeps what belongs to one client apart
// from every other.
//
// It owns the route of a call to an instance (the shared one, or one of the session pool), the
// requests of apps to clients while calls are in flight, the translation between MCP revisions (a
// question of an app becomes a result, and the other way around), calls that are suspended until
// their client sends its input, and what is known about what bundles ask. It does not start
// instances (apps, instance) and does not decide who may call what (tools).
package interact
