// Package sample is the app that `make run` shows: an MCP server inside the ropewalk executable.
//
// It owns four tools (a plain one, one with progress, one that fails, one with a view) and one
// ui:// view, and how a bundle directory around them is written. To the server it is a bundle
// like any other, installed from its directory and run as a process; nothing treats it specially.
package sample
