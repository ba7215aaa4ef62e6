// Package pasted reads the configurations of MCP clients: which servers a text names, and how each of them is started or
// reached. It goes by the shape of what it finds, since clients differ in the names of their keys and in the format. It
// resolves and installs nothing; package source turns a Definition into an order.
package pasted
