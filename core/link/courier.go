package link

import (
	"bytes"
	"context"
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

	"github.com/ropewalk/ropewalk/core/rawjson"
)

const (
	maxRedirects = 5
	maxErrorBody = 64 << 10
	firstRead    = 16 << 10 // how much space an answer is given at first
)

// transport carries requests to one remote server: it adds the secrets, sees that they reach nobody
// else, and bounds what comes back. It is the http.RoundTripper below the SDK's transports.
type courier struct {
	origin *url.URL
	header http.Header
	base   *http.Transport
	limit  int
	wait   time.Duration
	junk   tally
	// version is the negotiated protocol revision, sent with every request after the handshake.
	version atomic.Pointer[string]
}

func newCourier(origin *url.URL, header http.Header, o RemoteOptions) *courier {
	control := o.Control
	if control == nil {
		control = guard(o.AllowPrivate)
	}
	dialer := &net.Dialer{Timeout: o.ConnectTimeout, Control: control}
	return &courier{
		origin: origin, header: header, limit: o.MaxAnswer, wait: o.HeaderTimeout,
		junk: tally{log: o.Logger, app: o.Name, sentence: "the remote server sent something else than MCP messages"},
		base: &http.Transport{ // no proxy: the guard must see the address itself
			DialContext: dialer.DialContext, TLSHandshakeTimeout: o.ConnectTimeout, ForceAttemptHTTP2: true,
			MaxIdleConnsPerHost: 64, IdleConnTimeout: 90 * time.Second, MaxResponseHeaderBytes: 64 << 10,
		},
	}
}

// guard refuses special addresses when they are dialled, after the name was resolved.
func guard(allowPrivate bool) func(network, address string, c syscall.RawConn) error {
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

// sameOrigin also allows the step from http to https on the standard ports: secrets are safer there.
func sameOrigin(from, to *url.URL) bool {
	if from.Scheme == to.Scheme {
		return strings.EqualFold(from.Host, to.Host)
	}
	return from.Scheme == "http" && to.Scheme == "https" && from.Port() == "" && to.Port() == "" &&
		strings.EqualFold(from.Hostname(), to.Hostname())
}

// redirect implements http.Client.CheckRedirect.
func (c *courier) redirect(r *http.Request, via []*http.Request) error {
	switch {
	case len(via) > maxRedirects:
		return c.failure("redirects too often", nil)
	case !sameOrigin(c.origin, r.URL):
		return c.failure("redirects to "+r.URL.Host+", which must not see its secrets: install the app with that URL", nil)
	case r.Method != via[0].Method:
		return c.failure("redirects a "+via[0].Method+" to a "+r.Method, nil)
	}
	return nil
}

func (c *courier) failure(reason string, cause error) *RemoteError {
	return &RemoteError{Host: c.origin.Host, Reason: reason, cause: cause}
}

// RoundTrip implements http.RoundTripper.
func (c *courier) RoundTrip(r *http.Request) (*http.Response, error) {
	if !sameOrigin(c.origin, r.URL) {
		return nil, c.failure("names an endpoint on another host, "+r.URL.Host+": that is refused", nil)
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	out := r.Clone(ctx)
	repeat(ctx, out.Header)
	for name, values := range c.header {
		out.Header[name] = values
	}
	if v := c.version.Load(); v != nil && out.Header.Get("Mcp-Protocol-Version") == "" {
		out.Header.Set("Mcp-Protocol-Version", *v)
	}
	late := time.AfterFunc(c.wait, func() { cancel(c.failure(fmt.Sprintf("did not begin to answer within %v", c.wait), nil)) })
	resp, err := c.base.RoundTrip(out)
	late.Stop()
	if err != nil {
		err = c.explain(ctx, r, err)
		cancel(nil)
		return nil, err
	}
	resp.Body = &body{ReadCloser: resp.Body, cancel: cancel}
	return c.receive(r, resp)
}

// explain turns a failed round trip into an error that is safe to show.
func (c *courier) explain(ctx context.Context, r *http.Request, err error) error {
	if r.Context().Err() != nil {
		return r.Context().Err()
	}
	if remote, ok := errors.AsType[*RemoteError](context.Cause(ctx)); ok {
		return remote
	}
	if errors.Is(err, ssrf.ErrProhibitedIP) || errors.Is(err, ssrf.ErrProhibitedNetwork) {
		return &RemoteError{Host: c.origin.Host, Reason: "resolves to an address that must not be reached from here", Down: true, cause: err}
	}
	op, ok := errors.AsType[*net.OpError](err)
	failed := c.failure(fmt.Sprintf("cannot be reached: %v", err), err)
	failed.Down = ok && op.Op == "dial"
	return failed
}

// body ends the request's context with itself.
type body struct {
	io.ReadCloser
	cancel context.CancelCauseFunc
}

func (b *body) Close() error {
	err := b.ReadCloser.Close()
	b.cancel(nil)
	return err
}

// receive bounds and checks what the SDK will read.
func (c *courier) receive(r *http.Request, resp *http.Response) (*http.Response, error) {
	media, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	media = strings.TrimSpace(strings.ToLower(media))
	switch {
	case resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden:
		_ = resp.Body.Close()
		return nil, &RemoteError{Host: c.origin.Host, Status: resp.StatusCode,
			Reason: fmt.Sprintf("refuses the credentials (%d): check transport.auth", resp.StatusCode)}
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		resp.Body = limited{Reader: io.LimitReader(resp.Body, maxErrorBody), Closer: resp.Body}
	case media == "text/event-stream":
		resp.Body = &filter{in: newEvents(resp.Body, c.limit), source: resp.Body, junk: &c.junk, limit: c.limit, id: func() string { return idOf(r) }}
	case r.Method == http.MethodPost && media == "application/json":
		return c.receiveJSON(r, resp)
	default:
		resp.Body = limited{Reader: io.LimitReader(resp.Body, maxErrorBody), Closer: resp.Body}
	}
	return resp, nil
}

type limited struct {
	io.Reader
	io.Closer
}

// receiveJSON reads the answer to one call, so that one that is too large or no message fails that
// call and not, as the SDK would have it, the session.
func (c *courier) receiveJSON(r *http.Request, resp *http.Response) (*http.Response, error) {
	defer func() { _ = resp.Body.Close() }()
	data, err := readUpTo(resp.Body, c.limit+1)
	if err != nil {
		return nil, c.explain(r.Context(), r, err)
	}
	if len(data) > 0 {
		data = sound(data, c.limit, &c.junk, func() string { return idOf(r) })
	}
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(data)), int64(len(data))
	return resp, nil
}

// readUpTo reads to the end, or limit bytes. It doubles its buffer, where io.ReadAll would leave
// five times as much to the garbage collector.
func readUpTo(in io.Reader, limit int) ([]byte, error) {
	data := make([]byte, 0, min(limit, firstRead))
	for {
		n, err := in.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		switch {
		case errors.Is(err, io.EOF) || err == nil && len(data) == limit:
			return data, nil
		case err != nil:
			return nil, err
		case len(data) == cap(data):
			data = append(make([]byte, 0, min(2*cap(data), limit)), data...)
		}
	}
}

// sound returns data when it is one message, and otherwise an error to the call whose id it answers.
func sound(data []byte, limit int, junk *tally, id func() string) []byte {
	reason := ErrTooLarge.Error() + fmt.Sprintf(": the limit is %d bytes", limit)
	code := codeTooLarge
	if len(data) <= limit {
		if _, err := scanEnvelope(data); err == nil {
			return repaired(data)
		}
		reason, code = ErrMalformed.Error(), codeMalformed
	}
	junk.add(reason)
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q}}`, id(), code, reason)
}

// Codes of the errors that the transport puts in place of an answer; they never leave the package.
const (
	codeTooLarge  = -32990
	codeMalformed = -32991
)

// idOf is the id of the request's message, as JSON.
func idOf(r *http.Request) string {
	if r.GetBody == nil {
		return "null"
	}
	sent, err := r.GetBody()
	if err != nil {
		return "null"
	}
	defer func() { _ = sent.Close() }()
	data, err := io.ReadAll(sent)
	if err != nil {
		return "null"
	}
	id, err := rawjson.Find(data, "id")
	if err != nil || id.Empty() {
		return "null"
	}
	return string(id.In(data))
}
