// Package httpapi is the door for people and programs: the HTTP API under /v1, on Fiber.
//
// It owns the listener's manners (headers, limits, timeouts, CORS, Host and Origin checks), the
// route table, the reading of bodies, the writing of errors, and the event stream's wire. It turns
// a request into a core.Caller and plain values, asks one room, and writes what that room said.
//
// It does not decide who someone is (access), what an app is (apps), which tools there are (tools)
// or what happened (event), and it keeps nothing of a request past its handler. What else is served
// on the same listener, such as /mcp, is mounted by the wiring and brings its own rules.
//
// It is apart because statuses, headers and HTTP's traps stop here: no room behind it knows them.
// routes.go mirrors part 4 of the specification, openapi.yaml describes it, and a test holds the
// running server against that document.
package httpapi
