package remote

import (
	"context"
	"io"

	"golang.org/x/time/rate"
)

// The pace at which the stream of unprompted messages is read. Nothing waits for these messages, and handling them
// takes time, so a server that sends without a pause would keep a processor busy. Unread data remains in the
// connection's buffers, and then on the server.
const (
	pacePerSecond = 1 << 20  // bytes
	paceAtOnce    = 64 << 10 // bytes per read
)

type paceKey struct{}

// paced returns the body of a stream, limited to the pace in the request's context, if any.
func paced(ctx context.Context, body io.ReadCloser) io.ReadCloser {
	if pace, ok := ctx.Value(paceKey{}).(*rate.Limiter); ok {
		return &pacedBody{ReadCloser: body, ctx: ctx, pace: pace}
	}
	return body
}

// pacedBody is a body read at a limited pace.
type pacedBody struct {
	io.ReadCloser
	ctx  context.Context //nolint:containedctx // the context of the request; when it is cancelled, Read stops waiting
	pace *rate.Limiter
}

// Read implements io.Reader.
func (b *pacedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p[:min(len(p), paceAtOnce)])
	if n > 0 {
		if late := b.pace.WaitN(b.ctx, n); late != nil {
			return 0, late
		}
	}
	return n, err
}
