// Package store keeps what must outlive the process: workspaces, users, members, installed apps,
// conversations and what they used, login cookies, and the server's own settings.
//
// It owns the records and the promise that what it acknowledged is durable: when a method has returned
// nil, neither a kill nor the loss of power takes the change away. A PostgreSQL whose synchronous_commit
// is off does not keep this promise. A conversation is found by its owner in its workspace only; to
// everybody else it does not exist. It does not own what the records mean, nor MCP sessions, which have a
// plugin contract of their own.
//
// Beneath it are the database with its transactions (database), the schema (migrations), the search
// index (search), what servers of one deployment tell each other (cluster), and backups (backup).
//
// The default is an SQLite file in the home directory, which one server opens at a time. A PostgreSQL
// database may be shared by several servers, which then also find each other's bundles there.
package store
