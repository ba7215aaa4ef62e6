// Package cluster transmits messages between the servers of one deployment, which share a PostgreSQL
// database.
//
// It owns notices, which are rows that announce a change or contain an event, and the connection that wakes servers when
// there are new notices. It also owns peer requests, which are questions from one server to another, with their
// answers; they travel as notices. Servers do not need each other's addresses: the database is the only thing they
// share. The package does not know the meaning of the changes, questions and answers.
package cluster
