// Package apidocs serves the reference of the HTTP API at /docs. It is one HTML page without scripts or external
// resources, rendered from the OpenAPI document on the first request.
//
// It owns the page and its content security policy. Package httpapi owns the document.
package apidocs
