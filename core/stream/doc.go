// Package stream keeps server-sent event streams open on Fiber connections.
//
// It adds guarantees that Fiber and fasthttp do not provide. Each event is sent as one piece. A reader that disconnects
// is noticed immediately, and a reader that stalls is disconnected after 10 seconds. Streams end in an orderly way when
// the server shuts down. It takes over the connection (Hijack), so a stream is the last response on its connection.
//
// It does not know the content of the streams, which the endpoints httpapi and mcphttp decide. It does not resume
// streams: event IDs and replay are up to its callers.
//
// It is a separate package because both endpoints need it, and because nothing from a fiber.Ctx may be kept after
// its handler returns: this is the one place with objects that outlive a handler.
package stream
