// Package postgres is a session store in PostgreSQL (14 or newer): one table, shared by all
// replicas of the server, made at the first start when the role may make tables.
//
// Lifetimes are counted by the clock of the database, so replicas need not agree on the time. A row
// whose lifetime is over is invisible at once and deleted within a minute, by whichever replica
// comes first.
package postgres
