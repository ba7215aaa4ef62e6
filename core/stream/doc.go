// Package stream keeps server-sent event streams open on Fiber connections.
//
// It owns what Fiber and fasthttp do not do: each event leaves as one piece, a reader that went
// away is noticed at once, a reader that stalls is cut after 10 seconds, and when the server shuts
// down the streams end in an orderly way. It takes the connection over (Hijack), so a stream is
// the last answer on its connection.
//
// It does not know what is streamed: the endpoints httpapi and mcphttp decide that. It does not
// resume: event ids and replay are not its business.
//
// It is apart because both endpoints need the same piece, and because nothing of a fiber.Ctx may be
// kept past its handler: here is the one place that outlives one.
package stream
