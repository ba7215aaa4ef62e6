// Package respond holds what the handlers of /v1 share to write a response: JSON values, entity tags,
// the keep-alive of streams, contexts that end when the client disconnects.
//
// It does not write errors: handlers return them, and package httpapi writes them.
package respond
