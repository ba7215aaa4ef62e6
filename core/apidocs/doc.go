// Package apidocs serves the HTTP API reference at /docs. It is one HTML page without scripts or external resources,
// rendered from the OpenAPI document on the first request.
//
// It owns the page and its content security policy. Package httpapi owns the document.
package apidocs
