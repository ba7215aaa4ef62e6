// Package store stores what must outlive the process: workspaces, users, members, installed apps,
// conversations and their usage, login cookies, and the server's own settings.
//
// It owns the records and the guarantee that acknowledged changes are durable: once a method has returned nil, neither
// a kill nor a power failure loses the change. PostgreSQL with synchronous_commit off does not fulfil this guarantee. A
// conversation is visible only to its owner, in its workspace. To everybody else, it does not exist. The package does
// not own the meaning of the records, or MCP sessions, which have their own plugin contract.
//
// Its subpackages are the database with its transactions (database), the schema (migrations), the search
// index (search), encryption (seal), messages between the servers of one deployment (cluster), and backups
// (backup).
//
// The default is an SQLite file in the home directory, which only one server can open at a time. Several
// servers may share a PostgreSQL database, where they also find each other's bundles.
package store
