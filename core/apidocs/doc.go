// Package apidocs serves the reference of the HTTP API at /docs: one page of HTML without scripts,
// written from the OpenAPI document at the first request, so that it needs no network.
//
// It owns the page and its policy. It does not own the document, which core/httpapi has and tests.
package apidocs
