// Package audit records who did what: logins, refusals, changes and calls.
//
// A Log passes each record to its sinks. The file sink chains records by hash (package hashchain). The HTTP
// sink sends batches.
// Records reads the file from its end, page by page.
//
// The package owns the records' form and where they go. It does not decide what is recorded: the HTTP API
// and the tool namespace do.
package audit
