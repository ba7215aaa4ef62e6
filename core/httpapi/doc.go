// Package httpapi serves the HTTP API under /v1 on Fiber.
//
// It owns the listener and its limits, the headers of every response, the route table, the writing of
// errors, and the wire format of the event stream. A handler turns a request into a core.Caller and
// plain values, calls one package, and writes the result. The subpackages own the reading of requests
// (intake), of JSON bodies (body) and the connections (listener).
//
// It does not decide who a caller is (access), run apps (apps), know which tools there are (tools) or
// what happened (event), and it keeps nothing of a request after its handler. Other endpoints of the
// listener, such as /mcp, are mounted by package server and bring their own rules.
//
// openapi.yaml describes every route; a test compares the running server with it.
package httpapi
