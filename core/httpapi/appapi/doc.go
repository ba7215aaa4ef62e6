// Package appapi serves the routes for apps and their tools: /v1/apps, /v1/tools, /v1/pins and /v1/approvals.
//
// A handler checks the caller's rights (core.Caller), calls package apps or tools, and writes the result. Package
// httpapi owns the route table.
package appapi
