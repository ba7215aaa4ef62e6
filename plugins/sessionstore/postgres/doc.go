// Package postgres is a session store in PostgreSQL (14 or newer). All servers of a deployment share one table. It is
// created at the first start if the role is allowed to create tables.
//
// The database's clock determines when lifetimes end, so servers need not agree on the time. An expired row is
// invisible immediately, and a server deletes it at the next purge (purgeEvery).
package postgres
