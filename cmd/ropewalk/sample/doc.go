// Package sample is the app that `make run` shows: an MCP server inside the ropewalk executable.
//
// It has four tools (a plain one, one with progress, one that fails, and one with a view) and one ui:// view.
// It also writes the bundle directory. The server treats it like any other bundle: it is installed from its
// directory and runs as a process.
package sample
