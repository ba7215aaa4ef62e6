// Package appapi serves the routes of apps and their tools: /v1/apps and /v1/tools.
//
// A handler checks what the caller may do (the rights of core.Caller), calls packages apps or tools, and
// writes the result. Package httpapi owns the route table.
package appapi
