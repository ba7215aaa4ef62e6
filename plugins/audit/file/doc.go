// Package file is the audit sink that appends to a file, one line for each record, each with the hash of the
// line before. `ropewalk audit verify` finds the first line that was changed, removed or inserted.
//
// It owns its settings and what a record looks like; the chain is package hashchain, as that of the server's
// own audit.file. Several processes may write one file.
package file
