// Package database opens the database that holds the state, an SQLite file or a PostgreSQL database,
// and runs transactions on it.
//
// It owns the connections and their settings, the lock of a home directory, the deadline of each PostgreSQL statement,
// and group commit. It also owns the check that there are no installed apps when a database is empty, and the advice in
// database errors. Most differences between the two databases are in sqlite.go and postgres.go. The package does not
// know the meaning of the tables.
package database
