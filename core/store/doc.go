// Package store keeps what must outlive the process: workspaces, users, members, installed apps,
// login cookies and the server's own settings.
//
// It owns the SQL, the migrations and the promise that what it acknowledged is durable: a method
// that returned nil has been written through to the disk. It does not own what the records mean,
// nor the files of apps, nor MCP sessions (those have a plugin contract of their own).
//
// It is apart because SQL has one door. The default is an SQLite file under the home, which one
// server opens at a time; the statements are the common part of SQLite and PostgreSQL, and what
// differs between the two is in dialect.go alone.
package store
