package remote

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/ropewalk/ropewalk/core"
)

// Authorizer supplies the access tokens of one account for a remote app.
type Authorizer interface {
	// Token returns an access token. refused is a token that the app has just rejected, or "" if there is none. Token does
	// not return it again. Errors are core.Errors that are safe to show.
	Token(ctx context.Context, refused core.Secret) (Token, error)
}

// Token is an access token.
type Token struct {
	Access   core.Secret
	Key      *ProofKey // the key that the token is bound to; nil for a bearer token
	Resource string    // the resource that the token was issued for (RFC 8707), so that no other server gets it; "" if unknown
}

// Covers reports whether a resource identifier is the app's URL or a parent of it.
func Covers(resource string, app *url.URL) bool {
	r, err := url.Parse(resource)
	if err != nil || r.Scheme != app.Scheme || !strings.EqualFold(hostPort(r), hostPort(app)) || r.User != nil || r.Fragment != "" || r.RawQuery != "" && r.RawQuery != app.RawQuery {
		return false
	}
	below, isBelow := strings.CutPrefix(app.EscapedPath(), strings.TrimSuffix(r.EscapedPath(), "/"))
	return isBelow && (below == "" || below[0] == '/')
}

// hostPort returns the host and port of an address, using its scheme's default port if it has none.
func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// Challenge describes the requirements of a server, taken from its response to an unauthorized request (RFC 6750, RFC
// 9728).
type Challenge struct {
	Error    string // for example insufficient_scope
	Scope    string // the required scopes, separated by spaces
	Metadata string // the URL of the server's protected resource metadata
	Proofs   bool   // the server requires proof that the sender has the token's key (DPoP, RFC 9449)
}

// challengeOf reads the WWW-Authenticate headers and skips malformed ones. A server that accepts both kinds of tokens
// sends two challenges. The first shows which kind it prefers, and either may contain the error (RFC 9449 section 7.2).
func challengeOf(h http.Header) (c Challenge) {
	var challenges []oauthex.Challenge
	for _, header := range h.Values("WWW-Authenticate") {
		if some, err := oauthex.ParseWWWAuthenticate([]string{header}); err == nil {
			challenges = append(challenges, some...)
		}
	}
	found := false
	for _, one := range challenges {
		if one.Scheme != "bearer" && one.Scheme != "dpop" {
			continue
		}
		if !found {
			found, c.Proofs = true, one.Scheme == "dpop"
		}
		c.Error = cmp.Or(c.Error, one.Params["error"])
		if one.Params["error"] == wantsNonce {
			c.Error = wantsNonce
		}
		c.Scope, c.Metadata = cmp.Or(c.Scope, one.Params["scope"]), cmp.Or(c.Metadata, one.Params["resource_metadata"])
	}
	return c
}

// renewable reports whether a fresh token may help. Some servers return 403 for an expired token.
func (e *Error) renewable() bool {
	return e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden && e.Challenge.Error == "invalid_token"
}

// unexplained reports whether a server returned 403 without a reason. A few servers do so for an expired token.
func (e *Error) unexplained() bool {
	return e.Status == http.StatusForbidden && e.Challenge.Error == ""
}

// maxRefusals is how many tokens of an account a server may reject for one request. The authorizer is also asked after
// the last refusal, because only it knows why the app rejects a fresh token.
const maxRefusals = 2

// maxNonces is how many of a server's nonces are tried for one request. Another request may use up the first.
const maxNonces = 2

const notAllowed = "does not allow the account to do this (403)"

// authorized sends a request with the account's token. If the server returns 401, it did not process the request, so
// the request is sent again with a fresh token, or with the nonce that the server requires. After a 403 without a
// reason, it tries one fresh token.
func (c *roundTripper) authorized(r *http.Request) (*http.Response, error) {
	var refused core.Secret
	var forbidden *Error // the token was rejected without a reason
	refusals, nonces, resendable := 0, 0, r.Body == nil || r.GetBody != nil
	for {
		token, err := c.authorizer.Token(r.Context(), refused)
		if err == nil && token.Resource != "" && !Covers(token.Resource, c.origin) {
			err = core.Errorf(core.CodeLoginNeeded, "the account was linked when the app had a different address")
		}
		if err != nil {
			if r.Body != nil {
				_ = r.Body.Close()
			}
			if forbidden != nil && core.CodeOf(err) != core.CodeLoginNeeded { // no login is needed, so the token had not expired
				return nil, forbidden
			}
			if refused != "" {
				return nil, c.failure("rejects the account: "+core.TextOf(err), err)
			}
			return nil, c.failure("was not called: "+core.TextOf(err), err)
		}
		out := r.Clone(r.Context())
		if refusals+nonces > 0 && r.GetBody != nil {
			if out.Body, err = r.GetBody(); err != nil {
				return nil, err
			}
		}
		if err := c.present(out, token); err != nil {
			return nil, err
		}
		resp, err := c.exchange(out)
		failed, ok := err.(*Error) //nolint:errorlint // exchange returns it unwrapped
		switch {
		case !ok || failed.Status == 0:
			return resp, err
		case failed.Challenge.Error == wantsNonce && token.Key != nil && nonces < maxNonces && resendable:
			nonces++
			continue
		case failed.Challenge.Error == wantsNonce && token.Key != nil: // the nonce was rejected, not the token
			failed.Reason = "rejects the proof because it lacks the right nonce (DPoP)"
		case failed.renewable() && refusals < maxRefusals && resendable:
			refusals++
			refused = token.Access
			continue
		case failed.renewable():
			failed.Reason = fmt.Sprintf("rejected the account's token (%d), although it had just been renewed", failed.Status)
		case failed.unexplained() && refusals == 0 && resendable:
			failed.Reason = notAllowed
			refusals, refused, forbidden = 1, token.Access, failed
			continue
		case failed.Challenge.Error == "insufficient_scope":
			failed.Reason = "requires more permissions than the account has"
			failed.cause = core.Errorf(core.CodeLoginNeeded, "the app requires more permissions than the account has").
				WithDetails(core.AccountNeeded{Scopes: strings.Fields(failed.Challenge.Scope)})
		case failed.Status == http.StatusForbidden:
			failed.Reason = notAllowed
		}
		return nil, failed
	}
}

// present adds a token to a request.
func (c *roundTripper) present(r *http.Request, token Token) error {
	if token.Key == nil {
		r.Header.Set("Authorization", "Bearer "+token.Access.Reveal())
		return nil
	}
	nonce := ""
	if last := c.nonce.Load(); last != nil {
		nonce = *last
	}
	proof, err := token.Key.proof(r.Method, r.URL, token.Access, nonce)
	r.Header.Set("Authorization", "DPoP "+token.Access.Reveal())
	r.Header.Set(headerProof, proof)
	return err
}

// probe is a request that every MCP server understands. It has no effect: the server rejects it, or ends the session.
const probe = `{"jsonrpc":"2.0","id":1,"method":"ping"}`

// Probe sends a remote app a request without an account's token, and returns the challenge with which the app rejects
// it. private reports whether the app responded from an address in this server's own network. The app's host name is
// not enough to tell, because it may have several addresses, which may change at any moment.
func Probe(ctx context.Context, r core.Remote, client *http.Client) (c Challenge, private bool, err error) {
	target, err := checkURL(r.URL)
	if err != nil {
		return c, false, err
	}
	header, err := configuredHeaders(r)
	if err != nil {
		return c, false, err
	}
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) {
		private = isPrivate(got.Conn.RemoteAddr())
	}})
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, target.String(), strings.NewReader(probe))
	if err != nil {
		return c, false, err
	}
	request.Header = header
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	response, err := client.Do(request)
	if err != nil {
		return c, false, SafeError(err)
	}
	_ = response.Body.Close()
	return challengeOf(response.Header), private, nil
}

// isPrivate reports whether AllowPrivate is needed to connect to an address.
func isPrivate(address net.Addr) bool {
	to, err := netip.ParseAddrPort(address.String())
	if err != nil {
		return false
	}
	ip := to.Addr().Unmap()
	return ip.IsLoopback() || ip.IsPrivate() || netip.MustParsePrefix("100.64.0.0/10").Contains(ip)
}

const (
	clientTimeout      = 30 * time.Second // for a whole request by NewClient's client
	maxClientRedirects = 3
)

// NewClient returns a client for services that belong to a remote app, such as its authorization server. It has the
// same address checks as New, but no proxy and no cookies. It follows redirects only for reads, and never from https to
// http.
func NewClient(o Options) *http.Client {
	control := o.Control
	if control == nil {
		control = dialGuard(o.AllowPrivate)
	}
	dialer := &net.Dialer{Timeout: defaultConnectTimeout, Control: control}
	return &http.Client{
		Timeout: clientTimeout,
		Transport: &http.Transport{
			DialContext: dialer.DialContext, TLSHandshakeTimeout: defaultConnectTimeout, ForceAttemptHTTP2: true,
			IdleConnTimeout: 30 * time.Second, MaxIdleConnsPerHost: 4, MaxResponseHeaderBytes: 64 << 10, DisableCompression: true,
		},
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			switch {
			case r.Method != http.MethodGet || via[0].Method != http.MethodGet:
				return fmt.Errorf("%s redirects a %s; redirects are not followed", via[0].URL.Host, via[0].Method)
			case len(via) > maxClientRedirects:
				return fmt.Errorf("%s redirects too many times", via[0].URL.Host)
			case via[len(via)-1].URL.Scheme == "https" && r.URL.Scheme != "https":
				return fmt.Errorf("%s redirects from https to %s, which is not followed", via[0].URL.Host, r.URL.Scheme)
			}
			return nil
		},
	}
}
