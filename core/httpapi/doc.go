// Package httpapi serves the HTTP API under /v1 on Fiber.
//
// It owns the route table (routes.go), the order of checks (middleware.go, cors.go), and the setup and limits of the
// listener. It also owns the headers of every response, the writing of errors, and the server's own routes: events,
// health, metrics and the OpenAPI document. Imports go one way:
//
//	httpapi → login, accountapi, appapi,         the handlers, by topic
//	          chatapi, adminapi, landing
//	        → authn                              what a route requires of its caller
//	        → httpio                             reading bodies and parameters, writing values
//	        → intake, listener                   reading requests, accepting connections
//
// A tool call goes through middleware.go (wrap), cors.go (keepOut), audit.go, the Authenticator of authn, and
// appapi/tools.go, which calls package tools.
//
// It does not decide who a caller is (package access), run apps (apps), or know which tools exist (tools) or what
// happened (event). It keeps nothing from a request after the handler returns. Package server mounts the other
// endpoints, such as /mcp, which have their own rules.
//
// openapi.yaml describes every route. A test compares the running server with it.
package httpapi
