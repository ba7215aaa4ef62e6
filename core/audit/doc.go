// Package audit records who did what: logins, refusals, changes and calls.
//
// A Log passes each record to its sinks. The file sink chains records by hash (package hashchain), and
// Records reads it from its end, page by page. A Stream passes records on to a plugin of the kind audit.
//
// The package owns the records' form and where they go. It does not decide what is recorded: the HTTP API
// and the tool namespace do.
package audit
