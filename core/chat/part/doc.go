// Package part owns the order of the texts and tool calls of an assistant message. It does not read the
// store: package chat passes the turns of a message, and the importer the parts that a file has.
package part
