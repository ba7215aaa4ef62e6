package webguard

import (
	"net/url"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"
)

// OriginAllowed judges a request by the headers that browsers set and pages cannot. It allows requests
// that do not come from a page (no Origin, and no Sec-Fetch-Site of another site unless they only read),
// those of the server's own pages and of configured origins, and in dev mode those of pages that this
// machine serves.
func (p *Policy) OriginAllowed(ctx *fasthttp.RequestCtx) bool {
	origins := ctx.Request.Header.PeekAll(fasthttp.HeaderOrigin)
	if len(origins) == 0 {
		return ctx.IsGet() || ctx.IsHead() || !crossSite(ctx)
	}
	return len(origins) == 1 && p.originAllowed(string(origins[0]), string(ctx.Request.Header.Host()), p.Scheme(ctx))
}

// crossSite reports whether a browser says that a page of another site made the request.
func crossSite(ctx *fasthttp.RequestCtx) bool {
	site := string(ctx.Request.Header.Peek("Sec-Fetch-Site"))
	return site != "" && site != "same-origin" && site != "none" // "none": a person typed the address
}

// originAllowed judges an Origin of a request to a host that came over a scheme.
func (p *Policy) originAllowed(origin, host, scheme string) bool {
	origin = strings.ToLower(origin)
	from, err := url.Parse(origin)
	if err != nil || from.Host == "" || origin != from.Scheme+"://"+from.Host {
		return false // "null", empty, or not an origin of a page
	}
	if from.Scheme != "http" && from.Scheme != "https" {
		return false
	}
	if slices.Contains(p.Origins, origin) || (p.BaseURL != "" && withoutUsualPort(from) == OriginOf(p.BaseURL)) {
		return true
	}
	// TLS may end at a proxy that is not trusted to say so: a page over https may call its host over http.
	if from.Scheme == scheme || from.Scheme == "https" {
		own := &url.URL{Scheme: from.Scheme, Host: strings.ToLower(host)}
		if withoutUsualPort(from) == withoutUsualPort(own) {
			return true
		}
	}
	return p.Dev && Loopback(from.Host)
}

// OriginOf is what browsers call the pages of a public address, "" when it has no host.
func OriginOf(base string) string {
	u, err := url.Parse(strings.ToLower(base))
	if err != nil || u.Host == "" {
		return ""
	}
	return withoutUsualPort(u)
}

// withoutUsualPort is an address's origin as browsers write it.
func withoutUsualPort(u *url.URL) string {
	return u.Scheme + "://" + strings.TrimSuffix(u.Host, map[string]string{"http": ":80", "https": ":443"}[u.Scheme])
}
