// Package backup writes the state to a file, and restores it.
//
// A backup is always an SQLite file, even if the state is in a PostgreSQL database, so it can also move the state from
// one kind of database to the other. It contains every table with lasting content (copy.go) and the SHA-256 of each,
// which a restore verifies (sums.go). It does not contain the configuration, plugins, or files of apps that are not
// shared through the database.
package backup
