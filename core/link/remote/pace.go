package remote

import (
	"context"
	"io"

	"golang.org/x/time/rate"
)

// The pace at which the stream is read on which a server sends by itself. Nobody waits for what is on it, and each
// notification takes work: a server that sends without a pause would keep a processor busy. What is not read yet stays
// in the buffers of the connection, and then with the server.
const (
	pacePerSecond = 1 << 20  // bytes
	paceAtOnce    = 64 << 10 // bytes of one read
)

// newPace returns a pace for messages of up to limit bytes: two of that size are read without waiting.
func newPace(limit int) *rate.Limiter {
	return rate.NewLimiter(pacePerSecond, max(2*limit, paceAtOnce))
}

type paceKey struct{}

// withPace returns a context for a request whose stream is read at the pace.
func withPace(ctx context.Context, pace *rate.Limiter) context.Context {
	return context.WithValue(ctx, paceKey{}, pace)
}

// paced returns the body of a stream, read at the pace of the request's context if it has one.
func paced(ctx context.Context, body io.ReadCloser) io.ReadCloser {
	if pace, ok := ctx.Value(paceKey{}).(*rate.Limiter); ok {
		return &pacedBody{ReadCloser: body, ctx: ctx, pace: pace}
	}
	return body
}

// pacedBody is a body that is read at a pace.
type pacedBody struct {
	io.ReadCloser
	ctx  context.Context //nolint:containedctx // that of the request, which ends the waiting
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
