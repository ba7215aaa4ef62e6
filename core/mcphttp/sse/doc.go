// Package sse holds what the server sends on the streams of /mcp: the queue of a stream that a slow
// reader cannot hold up, the journal from which a broken stream is resumed, the response to a POST,
// which is plain JSON until something must be sent before it, and the body that writes it.
//
// It does not know sessions, methods or Fiber. Streams that take over their connection are written by
// stream.Writer.
package sse
