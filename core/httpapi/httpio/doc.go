// Package httpio holds what the handlers of /v1 share to read a request and to write its response: JSON
// bodies, parameters, JSON values, entity tags, the keep-alive of streams, and contexts that end when the
// client disconnects.
//
// It does not write errors: handlers return them, and package httpapi writes them.
package httpio
