package webclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"code.dny.dev/ssrf"

	"github.com/ropewalk/ropewalk/plugins"
)

const (
	maxResponse  = 8 << 20 // bytes per JSON response; a page of 100 entries is about 2 MiB
	maxRedirects = 5
)

// Options configure the connection to a registry.
type Options struct {
	URL     string         // the registry's address; see CheckURL
	Token   plugins.Secret // sent only to the registry's own origin; "" for none
	Private bool           // whether private networks (RFC 1918, RFC 4193) are allowed
	Timeout time.Duration  // per request; for a download, until its first byte
}

// Client is an HTTP client for one registry. It is safe for concurrent use.
type Client struct {
	base    *url.URL
	token   plugins.Secret
	timeout time.Duration
	api     *http.Client // follows redirects within the registry's own origin
	files   *http.Client // follows redirects to other hosts, as downloads need
}

// New returns a client. It checks addresses after resolving their names and before sending anything. Loopback is
// allowed only if the registry itself is on loopback. Link-local addresses, where clouds serve credentials, are never
// allowed. The client does not use a proxy.
func New(o Options) (*Client, error) {
	if err := CheckURL(o.URL); err != nil {
		return nil, err
	}
	base, err := url.Parse(o.URL)
	if err != nil {
		return nil, err
	}
	transport := newTransport(o, isLoopback(base.Hostname()))
	c := &Client{base: base, token: o.Token, timeout: o.Timeout}
	c.api = &http.Client{Transport: transport, CheckRedirect: c.sameOrigin}
	c.files = &http.Client{Transport: transport, CheckRedirect: c.noDowngrade}
	return c, nil
}

func newTransport(o Options, loopback bool) *http.Transport {
	var v4, v6 []netip.Prefix
	if loopback {
		v4 = append(v4, netip.MustParsePrefix("127.0.0.0/8"))
		v6 = append(v6, netip.MustParsePrefix("::1/128"))
	}
	if o.Private {
		v4 = append(v4, netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("172.16.0.0/12"), netip.MustParsePrefix("192.168.0.0/16"))
		v6 = append(v6, netip.MustParsePrefix("fc00::/7"))
	}
	guard := ssrf.New(ssrf.WithAnyPort(), ssrf.WithAllowedV4Prefixes(v4...), ssrf.WithAllowedV6Prefixes(v6...))
	dialer := &net.Dialer{Timeout: o.Timeout, Control: guard.Safe}
	return &http.Transport{
		DialContext:            dialer.DialContext,
		TLSHandshakeTimeout:    o.Timeout,
		ResponseHeaderTimeout:  o.Timeout,
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           4,
		IdleConnTimeout:        30 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
	}
}

// Close closes idle connections.
func (c *Client) Close() { c.api.CloseIdleConnections() }

func (c *Client) sameOrigin(req *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return errors.New("too many redirects")
	}
	if !c.own(req.URL) {
		return errors.New("it redirects to another host")
	}
	return nil
}

func (c *Client) noDowngrade(req *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return errors.New("too many redirects")
	}
	return c.checkTarget(req.URL)
}

// own reports whether u has the registry's own origin.
func (c *Client) own(u *url.URL) bool { return u.Scheme == c.base.Scheme && u.Host == c.base.Host }

// checkTarget refuses URLs that are not https. It allows http if the registry itself is on loopback.
func (c *Client) checkTarget(u *url.URL) error {
	if u.Scheme == "https" && u.Host != "" || u.Scheme == "http" && u.Host != "" && isLoopback(c.base.Hostname()) {
		return nil
	}
	return errors.New("it is not an https URL")
}

// Get sends a GET request to the registry and decodes the JSON response into answer. path is escaped and starts with a
// slash. Get returns plugins.ErrNotFound for a 404 or 410 from the registry itself, which it recognizes by a JSON
// object as the body. It returns plugins.ErrInvalid for 400 and 422, and plugins.ErrUnavailable for everything else
// that is not a valid response.
func (c *Client) Get(ctx context.Context, path string, query url.Values, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	address := strings.TrimRight(c.base.String(), "/") + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	resp, err := c.do(ctx, c.api, address)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxResponse+1))
	switch {
	case err != nil:
		return unavailable(resp.Request.URL, "did not finish its response: %v", err)
	case len(body) > maxResponse:
		return unavailable(resp.Request.URL, "returned more than %d bytes", maxResponse)
	case resp.StatusCode != http.StatusOK:
		return refusal(resp, body)
	}
	if err := json.Unmarshal(body, answer); err != nil {
		return unavailable(resp.Request.URL, "returned something that is not this registry's API: %v", err)
	}
	return nil
}

// Download opens a file that the registry named. The context also bounds reading.
func (c *Client) Download(ctx context.Context, address string) (io.ReadCloser, error) {
	u, err := url.Parse(address)
	if err != nil || u.User != nil || c.checkTarget(u) != nil {
		return nil, fmt.Errorf("%w: the file's address is not an https URL", plugins.ErrInvalid)
	}
	resp, err := c.do(ctx, c.files, address)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		_ = resp.Body.Close()
		return nil, refusal(resp, []byte("{}"))
	}
	return resp.Body, nil
}

func (c *Client) do(ctx context.Context, client *http.Client, address string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", plugins.ErrInvalid, err)
	}
	req.Header.Set("User-Agent", "ropewalk")
	if client == c.api {
		req.Header.Set("Accept", "application/json")
	}
	if c.token != "" && c.own(req.URL) {
		req.Header.Set("Authorization", "Bearer "+c.token.Reveal())
	}
	resp, err := client.Do(req)
	if err != nil {
		if inner, ok := errors.AsType[*url.Error](err); ok {
			err = inner.Err // the URL may carry a signature
		}
		return nil, fmt.Errorf("%w: the request to %s failed: %w", plugins.ErrUnavailable, req.URL.Host, err)
	}
	return resp, nil
}
