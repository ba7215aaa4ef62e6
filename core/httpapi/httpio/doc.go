// Package httpio contains the functions that the handlers of /v1 share for reading requests and writing responses: JSON
// bodies, parameters, JSON values, entity tags, stream keep-alives, and contexts that end when the client disconnects.
//
// It does not write errors: handlers return them, and package httpapi writes them.
package httpio
