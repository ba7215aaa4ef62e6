// Package apiclient is a client for the HTTP API, for the command line.
//
// It handles requests, errors and event streams of /v1. It does not depend on the server: it follows
// core/httpapi/openapi.yaml. If a command prints a result unchanged, the method returns raw JSON, so that
// `--json` shows exactly what the API returned.
package apiclient
