// Package httpapi serves the HTTP API under /v1 on Fiber.
//
// It owns the route table (routes.go), the order of checks (middleware.go, origin.go), the listener
// and its limits, the headers of every response, the writing of errors, and the routes of the server
// itself: events, health, metrics, the OpenAPI document. Imports go one way:
//
//	httpapi → login, appapi, chatapi, adminapi   the handlers, by topic
//	        → authn                              what a route requires of its caller
//	        → body, query, respond               reading JSON bodies and parameters, writing values
//	        → intake, listener                   reading requests, accepting connections
//
// A call of a tool goes through middleware.go (wrap), origin.go, audit.go, the Authenticator of authn,
// and appapi/tool_call.go, which calls package tools.
//
// It does not decide who a caller is (access), run apps (apps), know which tools there are (tools) or
// what happened (event), and it keeps nothing of a request after its handler. Other endpoints of the
// listener, such as /mcp, are mounted by package server and bring their own rules.
//
// openapi.yaml describes every route; a test compares the running server with it.
package httpapi
