// Package chatapi serves the routes for chat, conversations, usage and skills.
//
// A handler turns a request into plain values, calls package chat, and writes the result or the stream.
// Package httpapi owns the route table.
package chatapi
