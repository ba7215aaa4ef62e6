package remote

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"code.dny.dev/ssrf"

	"github.com/ropewalk/ropewalk/core/headerparam"
	"github.com/ropewalk/ropewalk/core/rpc"
)

// roundTripper is the http.RoundTripper underneath the SDK's transports. It sends requests to one remote server: it
// adds the credentials, refuses all other origins, and bounds the responses.
type roundTripper struct {
	origin    *url.URL
	header    http.Header
	base      *http.Transport
	limit     int
	wait      time.Duration
	discarded rpc.DiscardLog
	answered  atomic.Pointer[answer] // for the last request; nil before the first response
	version   atomic.Pointer[string] // the negotiated revision, sent with every request after the handshake

	authorizer Authorizer             // for the account that requests use; may be nil
	nonce      atomic.Pointer[string] // for the next proof; nil if the server has sent none
}

func newRoundTripper(origin *url.URL, header http.Header, o Options) *roundTripper {
	control := o.Control
	if control == nil {
		control = dialGuard(o.AllowPrivate)
	}
	dialer := &net.Dialer{Timeout: o.ConnectTimeout, Control: control}
	return &roundTripper{
		origin: origin, header: header, limit: o.MaxAnswer, wait: o.HeaderTimeout, authorizer: o.Authorizer,
		discarded: rpc.DiscardLog{Logger: o.Logger, Message: "remote server sent data that is not an MCP message"},
		base: &http.Transport{ // no proxy, so that the guard checks the actual address
			DialContext: dialer.DialContext, TLSHandshakeTimeout: o.ConnectTimeout, ForceAttemptHTTP2: true,
			MaxIdleConnsPerHost: 64, IdleConnTimeout: 90 * time.Second, MaxResponseHeaderBytes: 64 << 10,
			DisableCompression: true, // 1 MB can unpack to 1 GB, which takes half a minute to read
		},
	}
}

func (c *roundTripper) failure(reason string, cause error) *Error {
	return &Error{Host: c.origin.Host, Reason: reason, cause: cause}
}

// RoundTrip implements http.RoundTripper.
func (c *roundTripper) RoundTrip(r *http.Request) (*http.Response, error) {
	if !sameOrigin(c.origin, r.URL) {
		return nil, c.failure("refers to an endpoint on another host, "+r.URL.Host+", which is not allowed", nil)
	}
	if c.authorizer != nil {
		return c.authorized(r)
	}
	return c.exchange(r)
}

// exchange sends a request once.
func (c *roundTripper) exchange(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	out := r.Clone(ctx)
	applyHeader(ctx, out.Header)
	for name, values := range c.header {
		out.Header[name] = values
	}
	if v := c.version.Load(); v != nil && out.Header.Get("Mcp-Protocol-Version") == "" {
		out.Header.Set("Mcp-Protocol-Version", *v)
	}
	late := time.AfterFunc(c.wait, func() { cancel(c.failure(fmt.Sprintf("did not start to respond within %v", c.wait), nil)) })
	resp, err := c.base.RoundTrip(out)
	late.Stop()
	if err != nil {
		err = c.explain(ctx, r, err)
		cancel(nil)
		return nil, err
	}
	resp.Body = &cancelBody{ReadCloser: resp.Body, cancel: cancel}
	return c.receive(r, resp)
}

// explain turns a failed round trip into an error that is safe to show.
func (c *roundTripper) explain(ctx context.Context, r *http.Request, err error) error {
	if r.Context().Err() != nil {
		return r.Context().Err()
	}
	if remote, ok := errors.AsType[*Error](context.Cause(ctx)); ok {
		return remote
	}
	if errors.Is(err, ssrf.ErrProhibitedIP) || errors.Is(err, ssrf.ErrProhibitedNetwork) {
		return &Error{Host: c.origin.Host, Reason: "resolves to an address that apps may not connect to", Down: true, cause: err}
	}
	op, ok := errors.AsType[*net.OpError](err)
	failed := c.failure("cannot be reached: "+unreachable(err), err)
	failed.Down = ok && op.Op == "dial"
	return failed
}

// unreachable describes why no response came and what to check.
func unreachable(err error) string {
	if name, ok := errors.AsType[*net.DNSError](err); ok {
		if name.IsNotFound {
			return "its host name has no address; check the host in the URL"
		}
		return fmt.Sprintf("its host name could not be looked up (%s); check DNS on this server's machine", name.Err)
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return "it does not speak TLS; write http:// in the URL, or check the port"
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return fmt.Sprintf("its certificate is not trusted (%v); check the host in the URL, and the certificate authorities on this server's machine", innermost(err))
	}
	return fmt.Sprintf("%v; check the address, and that the remote server is running", innermost(err))
}

// innermost returns the last error of a chain, which mentions neither addresses nor system calls.
func innermost(err error) error {
	for next := errors.Unwrap(err); next != nil; next = errors.Unwrap(err) {
		err = next
	}
	return err
}

// cancelBody cancels its request's context when it is closed.
type cancelBody struct {
	io.ReadCloser
	cancel context.CancelCauseFunc
}

func (b *cancelBody) Close() error {
	err := b.ReadCloser.Close()
	b.cancel(nil)
	return err
}

// These headers repeat members of a request's body (MCP 2026-07-28, basic/transports, request metadata). The SDK sets
// them.
const (
	headerMethod = "Mcp-Method"
	headerName   = "Mcp-Name"
)

type headerKey struct{}

// WithHeader returns a context for a message that needs headers in addition to the SDK's.
func WithHeader(ctx context.Context, header http.Header) context.Context {
	if len(header) == 0 {
		return ctx
	}
	return context.WithValue(ctx, headerKey{}, header)
}

// applyHeader adds the headers from WithHeader, and encodes the name if a header cannot carry it.
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

const maxRedirects = 5

// sameOrigin reports whether two URLs have the same origin. It also accepts a change from http to https on the
// standard ports, which protects the credentials better.
func sameOrigin(from, to *url.URL) bool {
	if from.Scheme == to.Scheme {
		return strings.EqualFold(from.Host, to.Host)
	}
	return from.Scheme == "http" && to.Scheme == "https" && from.Port() == "" && to.Port() == "" &&
		strings.EqualFold(from.Hostname(), to.Hostname())
}

// checkRedirect implements http.Client.CheckRedirect. It refuses redirects to another origin, because the request
// carries the app's credentials, and redirects that change the method.
func (c *roundTripper) checkRedirect(r *http.Request, via []*http.Request) error {
	switch {
	case len(via) > maxRedirects:
		return c.failure("redirects too many times", nil)
	case !sameOrigin(c.origin, r.URL) && c.origin.Scheme != r.URL.Scheme:
		return c.failure(fmt.Sprintf("redirects from %s to %s://%s, which must not receive its credentials; install the app with that URL if you trust it", c.origin.Scheme, r.URL.Scheme, r.URL.Host), nil)
	case !sameOrigin(c.origin, r.URL):
		return c.failure("redirects to "+r.URL.Host+", which must not receive its credentials; install the app with that URL", nil)
	case r.Method != via[0].Method:
		return c.failure("redirects a "+via[0].Method+" to a "+r.Method, nil)
	}
	return nil
}

// dialGuard returns a check for each dialed address, after name resolution. It refuses loopback, private, link-local
// and other special addresses.
func dialGuard(allowPrivate bool) func(network, address string, c syscall.RawConn) error {
	options := []ssrf.Option{ssrf.WithAnyPort()}
	if allowPrivate {
		options = append(options,
			ssrf.WithAllowedV4Prefixes(prefixes("127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10")...),
			ssrf.WithAllowedV6Prefixes(prefixes("::1/128", "fc00::/7")...))
	}
	return ssrf.New(options...).Safe
}

func prefixes(list ...string) []netip.Prefix {
	parsed := make([]netip.Prefix, len(list))
	for i, p := range list {
		parsed[i] = netip.MustParsePrefix(p)
	}
	return parsed
}
