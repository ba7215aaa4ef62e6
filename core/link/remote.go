package link

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/net/http/httpguts"

	"github.com/ropewalk/ropewalk/core"
)

const (
	defaultConnectTimeout = 10 * time.Second
	defaultHeaderTimeout  = 5 * time.Minute
)

// RemoteOptions are how a remote server is reached. The zero value reaches public addresses only.
type RemoteOptions struct {
	Name           string        // the app's name, for log lines
	Logger         hclog.Logger  // nil logs nothing
	MaxAnswer      int           // bytes of one message; 0 is 16 MiB
	ConnectTimeout time.Duration // to connect, and again for the TLS handshake; 0 is 10 s
	HeaderTimeout  time.Duration // until an answer begins; 0 is 5 min. Streams may then last

	// AllowPrivate lets the URL resolve to loopback and private addresses. Link-local ones, where
	// clouds keep their metadata, stay forbidden.
	AllowPrivate bool
	// Control, when set, decides instead about every address that is dialled (net.Dialer.Control).
	Control func(network, address string, c syscall.RawConn) error
}

// RemoteError is why a remote server could not be used. Its message names no secret, neither
// headers nor the query of the URL, and is safe to show.
type RemoteError struct {
	Host   string
	Reason string
	Status int  // the HTTP status, 0 when there was no answer
	Down   bool // nothing could be reached at the address
	cause  error
}

func (e *RemoteError) Error() string { return fmt.Sprintf("remote server %s %s", e.Host, e.Reason) }

// Unwrap returns the cause, nil when there is none.
func (e *RemoteError) Unwrap() error { return e.cause }

// Remote is the transport to a remote server (docs/api.md 3.1): MCP's Streamable HTTP, or its HTTP+SSE
// of 2024-11-05. Credentials and extra headers go to the URL's own origin and nowhere else: a
// redirect elsewhere is refused, and so is an endpoint elsewhere that the server names. The error
// says which field of r is wrong.
func Remote(r core.Remote, o RemoteOptions) (mcp.Transport, error) {
	if o.Logger == nil {
		o.Logger = hclog.NewNullLogger()
	}
	if o.MaxAnswer <= 0 {
		o.MaxAnswer = DefaultMaxLine
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
		return nil, fmt.Errorf("transport.type %q is unknown: use streamable-http or sse", r.Type)
	}
	header, err := secretHeaders(r)
	if err != nil {
		return nil, err
	}
	courier := newCourier(target, header, o)
	return &remoteTransport{url: target, kind: r.Type, courier: courier, o: o}, nil
}

func checkURL(raw string) (*url.URL, error) {
	target, err := url.Parse(raw)
	switch {
	case err != nil: // the error would repeat the URL
		return nil, fmt.Errorf("url is not a URL")
	case target.Scheme != "http" && target.Scheme != "https" || target.Host == "":
		return nil, fmt.Errorf("url must begin with http:// or https:// and name a host")
	case target.User != nil:
		return nil, fmt.Errorf("url must not hold a user name or password: use transport.auth")
	}
	target.Fragment = ""
	return target, nil
}

// ownHeader reports whether the transport itself sets a header.
func ownHeader(key string) bool {
	switch key {
	case "Accept", "Connection", "Content-Length", "Content-Type", "Host", "Keep-Alive", "Last-Event-Id",
		"Mcp-Protocol-Version", "Mcp-Session-Id", headerMethod, headerName, "Te", "Trailer", "Transfer-Encoding", "Upgrade":
		return true
	}
	return strings.HasPrefix(key, "Proxy-") || strings.HasPrefix(key, headerParam)
}

func secretHeaders(r core.Remote) (http.Header, error) {
	header := http.Header{}
	add := func(field, name string, value core.Secret) error {
		switch key := http.CanonicalHeaderKey(name); {
		case !httpguts.ValidHeaderFieldName(name):
			return fmt.Errorf("%s: %q is not a header name", field, name)
		case ownHeader(key):
			return fmt.Errorf("%s: header %s cannot be set: it belongs to the transport", field, key)
		case !httpguts.ValidHeaderFieldValue(value.Reveal()):
			return fmt.Errorf("%s: the value of %s has characters that a header cannot hold", field, key)
		default:
			header.Set(key, value.Reveal())
			return nil
		}
	}
	for name, value := range r.Headers {
		if err := add("transport.headers", name, value); err != nil {
			return nil, err
		}
	}
	switch r.Auth.Type {
	case "", "none":
		return header, nil
	case "bearer":
		if r.Auth.Token == "" {
			return nil, fmt.Errorf("transport.auth.token is missing")
		}
		return header, add("transport.auth.token", "Authorization", "Bearer "+r.Auth.Token)
	case "header":
		return header, add("transport.auth", r.Auth.Name, r.Auth.Value)
	}
	return nil, fmt.Errorf("transport.auth.type %q is unknown: use bearer, header or none", r.Auth.Type)
}

type remoteTransport struct {
	url     *url.URL
	kind    string
	courier *courier
	o       RemoteOptions
}

// Connect implements mcp.Transport. The URL is dialled by the first message, or at once for SSE.
func (t *remoteTransport) Connect(ctx context.Context) (mcp.Connection, error) {
	client := &http.Client{Transport: t.courier, CheckRedirect: t.courier.redirect}
	var transport mcp.Transport = &mcp.SSEClientTransport{Endpoint: t.url.String(), HTTPClient: client, MaxEventSize: -1}
	if t.kind == "streamable-http" {
		// The SDK starts its own stream for what the server sends by itself only where nothing is
		// between it and its connection: the link listens instead.
		transport = &mcp.StreamableClientTransport{Endpoint: t.url.String(), HTTPClient: client, MaxEventSize: -1, DisableStandaloneSSE: true}
	}
	// The SDK ties an SSE stream to the context of its beginning: ctx may end that only.
	streamCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	begun := context.AfterFunc(ctx, cancel)
	conn, err := transport.Connect(streamCtx)
	if err == nil && !begun() {
		err = errors.Join(ctx.Err(), conn.Close())
	}
	if err != nil {
		cancel()
		t.courier.base.CloseIdleConnections()
		return nil, err
	}
	return &remoteConn{
		Connection: conn, client: client, courier: t.courier, url: t.url.String(), streams: t.kind == "streamable-http", cancel: cancel,
	}, nil
}

// remoteConn is one connection to a remote server.
type remoteConn struct {
	mcp.Connection
	client  *http.Client
	courier *courier
	url     string
	streams bool // the server may be asked for a stream of what it sends by itself
	cancel  context.CancelFunc
}

// Close implements mcp.Connection.
func (c *remoteConn) Close() error {
	err := c.Connection.Close()
	c.cancel()
	c.courier.base.CloseIdleConnections()
	return err
}
