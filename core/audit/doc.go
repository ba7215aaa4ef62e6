// Package audit records who did what: logins, refusals, changes and calls.
//
// A Log passes each record to its sinks. The file sink chains records by hash (package hashchain), and Records
// reads it backwards, page by page. A Stream passes records to an audit plugin.
//
// The package defines the format of the records and where they go. The HTTP API and the tool namespace decide
// what is recorded.
package audit
