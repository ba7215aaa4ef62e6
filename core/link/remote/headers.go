package remote

import (
	"context"
	"encoding/base64"
	"net/http"
	"strings"
)

// The headers in which requests of MCP 2026-07-28 repeat members of their body (basic/transports, request
// metadata). The SDK sets the first two.
const (
	headerMethod = "Mcp-Method"
	headerName   = "Mcp-Name"
	// HeaderParam begins the names of the headers that repeat arguments of a tool call.
	HeaderParam = "Mcp-Param-"
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
		out.Set(headerName, HeaderValue(name))
	}
}

// HeaderValue returns a value as it is if a header can hold it, and in the base64 form of MCP otherwise.
func HeaderValue(value string) string {
	encoded := strings.HasPrefix(value, "=?base64?") && strings.HasSuffix(value, "?=")
	special := strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' })
	if value != "" && !encoded && !special && strings.TrimSpace(value) == value { // many readers drop an empty header
		return value
	}
	return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(value)) + "?="
}
