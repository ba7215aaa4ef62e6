// Package audit records who did what: logins, refusals, changes and calls.
//
// A Log passes each record to its sinks. The file sink chains records by hash, so that Verify finds the
// first line that was changed, removed or inserted; who can write the file can replace all of it from
// some line on, so keep the last hash, or a copy of the file, elsewhere. The HTTP sink sends batches.
// Records reads the file from its end, page by page.
//
// The package owns the records' form and where they go. It does not decide what is recorded: the HTTP API
// and the tool namespace do.
package audit
