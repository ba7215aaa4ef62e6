// Package hashchain implements a file of records in which each line contains the hash of the previous line.
// Verify finds the first line that was changed, removed or inserted. Someone who can write to the file can
// replace everything from some line on; a copy, or the last hash kept elsewhere, reveals that too.
//
// The server's own audit file and the audit sink "file" use it. They define what a record is.
package hashchain
