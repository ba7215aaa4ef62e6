// Package store keeps what must outlive the process: workspaces, users, members, installed apps,
// conversations and what they used, login cookies and the server's own settings.
//
// It owns the SQL, the migrations, backup and restore, and the promise that what it acknowledged is
// durable: when a method has returned nil, the disk has said that it has it, so neither a kill nor
// the loss of power takes it away. A PostgreSQL keeps this promise unless its synchronous_commit is
// off. A conversation is found by its owner in its workspace only; to everyone else it does not exist.
// It does not own what the records mean, nor MCP sessions (those have a plugin contract of their own).
//
// A search reads words, not texts: each is a row of its own when it was written (words.go), and later
// one of a set of up to 65,536 conversations (packed.go).
//
// It is apart because SQL has one door. The default is an SQLite file under the home, which one
// server opens at a time. A PostgreSQL database may be shared by several, which then tell each other
// of changes and events (others.go), ask each other (errand.go) and find each other's bundles there
// (files.go). Migrations and statements are the common part of both; what
// differs is in sqlite.go and postgres.go.
package store
