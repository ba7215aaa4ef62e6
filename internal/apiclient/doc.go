// Package apiclient is a client of the HTTP API, for the command line.
//
// It owns requests, errors and event streams of /v1. It does not depend on the server: what it knows
// of the API is what core/httpapi/openapi.yaml says. Calls that commands print unchanged return the
// answer as raw JSON, so that `--json` shows exactly what the API says.
package apiclient
