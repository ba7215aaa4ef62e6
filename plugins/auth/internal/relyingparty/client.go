package relyingparty

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	"code.dny.dev/ssrf"

	"github.com/ropewalk/ropewalk/internal/hostport"
)

const (
	requestTimeout = 10 * time.Second // for a whole request to a provider, from dial to the last byte
	maxRedirects   = 3
)

// Reach defines which networks other than the public internet a provider may be in. Link-local addresses, where clouds
// serve credentials, are never reachable.
type Reach struct {
	Loopback bool // the configured issuer is on loopback
	Private  bool // the operator allows private networks (RFC 1918, RFC 4193)
}

// NewClient returns an HTTP client for requests to a provider. It checks the address after name resolution and
// before sending anything, so neither a discovery document nor DNS can direct it to a forbidden address. It
// follows redirects only on the same host, and uses no proxy.
func NewClient(reach Reach) *http.Client {
	var v4, v6 []netip.Prefix
	if reach.Loopback {
		v4 = append(v4, netip.MustParsePrefix("127.0.0.0/8"))
		v6 = append(v6, netip.MustParsePrefix("::1/128"))
	}
	if reach.Private {
		v4 = append(v4, netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("172.16.0.0/12"), netip.MustParsePrefix("192.168.0.0/16"))
		v6 = append(v6, netip.MustParsePrefix("fc00::/7"))
	}
	guard := ssrf.New(ssrf.WithAnyPort(), ssrf.WithAllowedV4Prefixes(v4...), ssrf.WithAllowedV6Prefixes(v6...))
	dialer := &net.Dialer{Timeout: requestTimeout, Control: func(network, address string, c syscall.RawConn) error {
		err := guard.Safe(network, address, c)
		if to, parseErr := netip.ParseAddrPort(address); err != nil && parseErr == nil {
			return refusedError{to.Addr().Unmap(), err}
		}
		return err
	}}
	return &http.Client{
		Timeout: requestTimeout,
		Transport: &http.Transport{
			DialContext:            dialer.DialContext,
			TLSHandshakeTimeout:    requestTimeout,
			ForceAttemptHTTP2:      true,
			MaxIdleConns:           4,
			IdleConnTimeout:        30 * time.Second,
			MaxResponseHeaderBytes: 64 << 10,
		},
		CheckRedirect: sameHost,
	}
}

// refusedError is returned for an address that Reach does not include.
type refusedError struct {
	ip    netip.Addr
	cause error
}

// Error implements error. The text appears in the server's log and readiness report, so it says
// what to do.
func (e refusedError) Error() string {
	switch {
	case e.ip.IsPrivate():
		return fmt.Sprintf("%v is in a private network: set allowPrivateNetwork: true if the provider is meant to be there", e.ip)
	case e.ip.IsLoopback():
		return fmt.Sprintf("%v is this machine: give a provider here a name that resolves to another of this machine's addresses (and set allowPrivateNetwork: true if that is private)", e.ip)
	}
	return e.cause.Error()
}

// Unwrap returns the reason in the terms of package ssrf.
func (e refusedError) Unwrap() error { return e.cause }

// errRedirect is returned for a redirect that is not followed.
var errRedirect = errors.New("the redirect is not followed")

func sameHost(req *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return fmt.Errorf("%w: the limit is %d", errRedirect, maxRedirects)
	}
	if first := via[0].URL; req.URL.Scheme != first.Scheme || req.URL.Host != first.Host {
		return fmt.Errorf("%w: it leads to another host", errRedirect)
	}
	return nil
}

// statusError is a response with a status other than 200.
type statusError struct {
	address string
	code    int
}

// Error implements error.
func (e *statusError) Error() string { return fmt.Sprintf("%s returned %d", e.address, e.code) }

// Fetch gets a document of at most limit bytes. Any response other than 200 is an error. It sends bearer as a bearer
// token unless it is empty.
func Fetch(ctx context.Context, client *http.Client, address, bearer string, limit int64) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	if bearer != "" {
		req.Header.Set("Authorization", "Bearer "+bearer)
	}
	return readAnswer(client, req, limit)
}

// readAnswer sends a request and returns the body of a response with status 200.
func readAnswer(client *http.Client, req *http.Request, limit int64) ([]byte, error) {
	address := req.URL.String()
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return nil, &statusError{address, resp.StatusCode}
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", address, err)
	}
	if int64(len(body)) > limit {
		return nil, fmt.Errorf("%s is larger than %d bytes", address, limit)
	}
	return body, nil
}

// CheckURL returns what is wrong with the URL of an issuer or an endpoint. It must be absolute and use https; http is
// allowed only on loopback. The port must be absent or from 1 to 65535, and there must be no user, query or fragment.
// The message is suitable for a settings problem.
func CheckURL(address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "" || u.Opaque != "":
		return errors.New("must be an absolute URL such as https://id.example.com")
	case hostport.Check(u) != nil:
		return hostport.Check(u)
	case u.User != nil:
		return errors.New("must not contain a user name or password")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return errors.New("must not have a query or a fragment")
	case u.Scheme == "https", u.Scheme == "http" && isLoopback(u.Hostname()):
		return nil
	}
	return errors.New("must be an https URL (http is for loopback addresses only)")
}

// OnLoopback reports whether the host in a URL is a loopback address.
func OnLoopback(address string) bool {
	u, err := url.Parse(address)
	return err == nil && isLoopback(u.Hostname())
}

func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}
