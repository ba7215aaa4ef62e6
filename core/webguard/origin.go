package webguard

import (
	"net/url"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"
)

// OriginAllowed judges a request by the headers that browsers set and pages cannot. It allows requests
// that do not come from a page, those of the server's own pages and of configured origins, and in dev mode
// those of pages that this machine serves. Without an Origin, Sec-Fetch-Site of another site refuses what
// may change something, and in dev mode, where no credential protects the answers, reads as well.
func (p *Policy) OriginAllowed(ctx *fasthttp.RequestCtx) bool {
	origins := ctx.Request.Header.PeekAll(fasthttp.HeaderOrigin)
	switch {
	case len(origins) > 1:
		return false
	case len(origins) == 1:
		return p.originAllowed(string(origins[0]), string(ctx.Request.Header.Host()), p.Scheme(ctx))
	case !crossSite(ctx):
		return true
	}
	return (ctx.IsGet() || ctx.IsHead()) && (!p.Dev || p.readAllowed(ctx))
}

// crossSite reports whether a browser says that a page of another site made the request.
func crossSite(ctx *fasthttp.RequestCtx) bool {
	site := fetchSite(ctx)
	return site != "" && site != "same-origin" && site != "none" // "none": a person typed the address
}

func fetchSite(ctx *fasthttp.RequestCtx) string {
	return string(ctx.Request.Header.Peek("Sec-Fetch-Site"))
}

// readAllowed judges a read that a page of another origin makes without an Origin header: a frame, an
// image, a script. The page is one that may read when it is served under a name of this machine too
// (same-site covers every port of it) or when the Referer, which pages can omit but not forge, says so.
func (p *Policy) readAllowed(ctx *fasthttp.RequestCtx) bool {
	host := string(ctx.Request.Header.Host())
	if fetchSite(ctx) == "same-site" && Loopback(host) {
		return true
	}
	from, err := url.Parse(string(ctx.Request.Header.Referer()))
	return err == nil && from.Host != "" && p.originAllowed(from.Scheme+"://"+from.Host, host, p.Scheme(ctx))
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
	if from.Scheme == scheme || p.UnknownTLS && from.Scheme == "https" {
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
