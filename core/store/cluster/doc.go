// Package cluster is what the servers of one deployment, which share a PostgreSQL database, say to each
// other.
//
// It owns notices: rows that tell of a change or carry an event, with the connection that wakes servers
// when there are new ones; and peer requests: questions of one server to another, with their answers,
// which travel as notices. No server needs to know where another one is: the database is the only thing
// they share. It does not know what is changed, asked or answered.
package cluster
