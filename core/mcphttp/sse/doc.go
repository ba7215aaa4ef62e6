// Package sse implements the event streams of /mcp. It owns a stream's queue, which a slow reader cannot block, and
// the journal, from which broken streams are resumed. It also owns the response to a POST, which is plain JSON unless
// something must be sent before the answer, and the body that writes it as a stream.
//
// It does not know sessions, methods or Fiber. stream.Writer writes the streams that take over their connection.
package sse
