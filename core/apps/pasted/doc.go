// Package pasted reads the configurations of MCP clients: which servers pasted text defines, and how each of them is
// started or reached. It recognizes them by their shape, because clients use different key names and formats. It does
// not resolve or install anything; package source turns a Definition into an order.
package pasted
