// Package sample is the app that `make run` shows: an MCP server inside the ropewalk executable.
//
// It has four tools (a plain one, one with progress, one that fails, one with a view) and one ui:// view, and
// writes a bundle directory around them. The server treats it like any other bundle: it is installed from its
// directory and runs as a process.
package sample
