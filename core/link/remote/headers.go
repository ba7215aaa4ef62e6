package remote

import (
	"context"
	"net/http"

	"github.com/ropewalk/ropewalk/core/headerparam"
)

// The headers in which requests of MCP 2026-07-28 repeat members of their body (basic/transports, request
// metadata). The SDK sets the first two.
const (
	headerMethod = "Mcp-Method"
	headerName   = "Mcp-Name"
)

type headerKey struct{}

// WithHeader returns a context for a message that is sent with more headers than the SDK sets.
func WithHeader(ctx context.Context, header http.Header) context.Context {
	if len(header) == 0 {
		return ctx
	}
	return context.WithValue(ctx, headerKey{}, header)
}

// applyHeader adds the headers of WithHeader, and encodes the name where a header cannot hold it.
func applyHeader(ctx context.Context, out http.Header) {
	if more, ok := ctx.Value(headerKey{}).(http.Header); ok {
		for name, values := range more {
			out[name] = values
		}
	}
	if name := out.Get(headerName); name != "" {
		out.Set(headerName, headerparam.Encode(name))
	}
}
