// Package apidocs serves the reference of the HTTP API at /docs: one HTML page without scripts or external
// resources, rendered from the OpenAPI document at the first request.
//
// It owns the page and its content security policy. It does not own the document, which belongs to core/httpapi.
package apidocs
