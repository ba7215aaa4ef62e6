package rival

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Direct serves the echo tool with the SDK's HTTP handler, without a gateway or a bundle. It writes its URL to
// out.
func Direct(ctx context.Context, tools int, out io.Writer) error {
	s := newEcho(tools)
	return serve(ctx, "/mcp", mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil), out)
}

// serve serves a handler at a path, on a free loopback port, until ctx is done. It writes its URL to out.
func serve(ctx context.Context, path string, h http.Handler, out io.Writer) error {
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle(path, h)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if _, err := fmt.Fprintf(out, "http://%s%s\n", ln.Addr(), path); err != nil {
		return err
	}
	if err := server.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
