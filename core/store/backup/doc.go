// Package backup writes the state into a file, and restores it.
//
// A backup is an SQLite file whatever database holds the state, so that it also moves a state from one
// database to the other. It holds every table that lasts (tables.go), and the SHA-256 of each, which a
// restore verifies (sums.go). It holds neither the files of apps that are not shared through the
// database, nor plugins, nor the configuration.
package backup
