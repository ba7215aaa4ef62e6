package remote

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/rpc"
)

const (
	defaultConnectTimeout = 10 * time.Second
	defaultHeaderTimeout  = 5 * time.Minute
)

// Options configure the connection to a remote server. The zero value reaches public addresses only.
type Options struct {
	Name           string        // the app's name, for log lines
	Logger         hclog.Logger  // nil disables logging
	MaxAnswer      int           // bytes of one message; 0 means 16 MiB
	ConnectTimeout time.Duration // to connect, and again for the TLS handshake; 0 means 10 s
	HeaderTimeout  time.Duration // how long to wait for a response to begin; 0 means 5 min. Streams may last longer

	// AllowPrivate lets the URL resolve to loopback and private addresses. Link-local addresses, where clouds serve
	// their metadata, remain forbidden.
	AllowPrivate bool
	// Authorizer supplies the tokens for the account that requests use. May be nil.
	Authorizer Authorizer
	// Control, if set, replaces the check of each dialed address (net.Dialer.Control).
	Control func(network, address string, c syscall.RawConn) error
}

// New returns a transport to a remote server (docs/api.md 3.1). Credentials and extra headers are sent only to the
// URL's own origin: redirects to other origins and endpoints on other origins are refused. The error names the invalid
// field of r.
func New(r core.Remote, o Options) (mcp.Transport, error) {
	if o.Logger == nil {
		o.Logger = hclog.NewNullLogger()
	}
	if o.MaxAnswer <= 0 {
		o.MaxAnswer = rpc.DefaultMaxLine
	}
	if o.ConnectTimeout <= 0 {
		o.ConnectTimeout = defaultConnectTimeout
	}
	if o.HeaderTimeout <= 0 {
		o.HeaderTimeout = defaultHeaderTimeout
	}
	target, err := checkURL(r.URL)
	if err != nil {
		return nil, err
	}
	if r.Type != "streamable-http" && r.Type != "sse" {
		return nil, fmt.Errorf("transport.type %q is unknown; use streamable-http or sse", r.Type)
	}
	header, err := configuredHeaders(r)
	if err != nil {
		return nil, err
	}
	return &transport{url: target, kind: r.Type, http: newRoundTripper(target, header, o)}, nil
}

type transport struct {
	url  *url.URL
	kind string
	http *roundTripper
}

// Connect implements mcp.Transport. For SSE, Connect dials the URL. Otherwise the first message does.
func (t *transport) Connect(ctx context.Context) (mcp.Connection, error) {
	client := &http.Client{Transport: t.http, CheckRedirect: t.http.checkRedirect}
	var transport mcp.Transport = &mcp.SSEClientTransport{Endpoint: t.url.String(), HTTPClient: client, MaxEventSize: -1}
	if t.kind == "streamable-http" {
		// The SDK opens the stream for server messages only on its own connection type; Conn.ReadServerStream
		// does it instead.
		transport = &mcp.StreamableClientTransport{Endpoint: t.url.String(), HTTPClient: client, MaxEventSize: -1, DisableStandaloneSSE: true}
	}
	// The SDK ends an SSE stream when Connect's context ends. ctx may only cancel the attempt to connect.
	streamCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	begun := context.AfterFunc(ctx, cancel)
	conn, err := transport.Connect(streamCtx)
	if err == nil && !begun() {
		err = errors.Join(ctx.Err(), conn.Close())
	}
	if err != nil {
		cancel()
		t.http.base.CloseIdleConnections()
		if _, explained := errors.AsType[*Error](err); !explained && ctx.Err() == nil {
			err = t.http.notMCP(err) // only HTTP+SSE connects here
		}
		return nil, err
	}
	return &Conn{
		Connection: conn, client: client, http: t.http, url: t.url.String(), streamable: t.kind == "streamable-http", cancel: cancel,
	}, nil
}

// Conn is one connection to a remote server.
type Conn struct {
	mcp.Connection
	client     *http.Client
	http       *roundTripper
	url        string
	streamable bool // whether the transport is Streamable HTTP
	cancel     context.CancelFunc
}

// SetProtocolVersion sets the negotiated revision, which is sent with every later request.
func (c *Conn) SetProtocolVersion(version string) { c.http.version.Store(&version) }

// Close implements mcp.Connection.
func (c *Conn) Close() error {
	err := c.Connection.Close()
	c.cancel()
	c.http.base.CloseIdleConnections()
	return err
}
