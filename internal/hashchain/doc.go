// Package hashchain is a file of records, each in a line that has the hash of the line before: Verify finds
// the first line that was changed, removed or inserted. Who can write the file can replace all of it from
// some line on; a copy, or the last hash kept elsewhere, shows that too.
//
// The server's own audit file and the audit sink of the name file are such files. What a record is, they
// decide.
package hashchain
