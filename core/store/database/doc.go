// Package database opens the database that holds the state, an SQLite file or a PostgreSQL database,
// and runs transactions on it.
//
// It owns the connections and their settings, the lock of a home directory, the schema migrations, the
// deadline of each PostgreSQL statement, group commit, the refusal of an empty database beside installed
// apps, and the advice in errors of the databases. What differs between the two is in sqlite.go and
// postgres.go. It does not know what the tables mean.
package database
