// Package file is the audit sink that appends to a file, one line per record, each with the hash of the
// previous line. `ropewalk audit verify` finds the first line that was changed, removed or inserted.
//
// It defines its settings and the format of a record. Package hashchain implements the chain; the server's own
// audit.file uses it too. Several processes may write to one file.
package file
