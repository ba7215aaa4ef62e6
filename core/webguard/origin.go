package webguard

import (
	"net/url"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"
)

// OriginAllowed judges a request by headers that browsers set and pages cannot. It allows requests that do not come
// from a page, requests from the server's own pages and from configured origins and, in dev mode, requests from pages
// that this machine serves. If a request has no Origin but its Sec-Fetch-Site indicates another site, it is rejected if
// it may change something. In dev mode, where no credential protects the responses, most reads are rejected as well
// (readAllowed).
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

// crossSite reports whether, according to the browser, a page of another site made the request.
func crossSite(ctx *fasthttp.RequestCtx) bool {
	site := fetchSite(ctx)
	return site != "" && site != "same-origin" && site != "none" // "none": the user typed the address
}

func fetchSite(ctx *fasthttp.RequestCtx) string {
	return string(ctx.Request.Header.Peek("Sec-Fetch-Site"))
}

// readAllowed judges a read that a page of another origin makes without an Origin header: for a frame, an image or a
// script. The page may read if it is served from this machine too (same-site, on any port), or if the origin in the
// Referer, which pages can omit but not forge, is allowed.
func (p *Policy) readAllowed(ctx *fasthttp.RequestCtx) bool {
	host := string(ctx.Request.Header.Host())
	if fetchSite(ctx) == "same-site" && Loopback(host) {
		return true
	}
	from, err := url.Parse(string(ctx.Request.Header.Referer()))
	return err == nil && from.Host != "" && p.originAllowed(from.Scheme+"://"+from.Host, host, p.Scheme(ctx))
}

// originAllowed reports whether a request to the given host, over the given scheme, may come from an Origin.
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

// OriginOf returns the origin that browsers send for pages at a public address, or "" if the address has no host.
func OriginOf(base string) string {
	u, err := url.Parse(strings.ToLower(base))
	if err != nil || u.Host == "" {
		return ""
	}
	return withoutUsualPort(u)
}

// withoutUsualPort returns an address's origin in the form that browsers send, without a default port.
func withoutUsualPort(u *url.URL) string {
	return u.Scheme + "://" + strings.TrimSuffix(u.Host, map[string]string{"http": ":80", "https": ":443"}[u.Scheme])
}
