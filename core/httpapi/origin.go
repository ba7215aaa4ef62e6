package httpapi

import (
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/ropewalk/ropewalk/core"
)

// origins decides which pages may use the API from a browser (spec part 1, contract part 2).
type origins struct {
	dev     bool
	allowed []string // ALLOWED_ORIGINS
	hosts   []string // accepted in dev mode beside loopback ones
	own     string   // of the public address, "" when it is not known
}

// guard runs before /v1. In dev mode, where nobody proves anything, it keeps other sites'
// pages from acting: the Host must be one of this machine's (a rebound DNS name is not), and what
// changes state must come from this machine's pages. With authentication it does the same for
// whatever a browser sends by itself, the cookie: a bearer is never sent by accident.
func (s *Server) guard(c *fiber.Ctx) error {
	c.Set(fiber.HeaderCacheControl, "no-store")
	ctx := c.Context()
	if s.origins.dev && !s.origins.hostAllowed(string(ctx.Host())) {
		return core.Errorf(core.CodeForbidden, "the Host is not this machine; name it in http.allowedHosts to accept it")
	}
	if ctx.IsGet() || ctx.IsHead() || (!s.origins.dev && bearerOf(c) != "") {
		return c.Next()
	}
	if !s.origins.mayAct(ctx) {
		return core.Errorf(core.CodeForbidden, "a page of another site may not do this; ALLOWED_ORIGINS names the sites that may")
	}
	return c.Next()
}

// mayAct judges a request that changes state by the headers that browsers set and pages cannot.
func (o origins) mayAct(ctx *fasthttp.RequestCtx) bool {
	values := ctx.Request.Header.PeekAll(fiber.HeaderOrigin)
	if len(values) > 1 {
		return false
	}
	if len(values) == 1 {
		return o.originAllowed(string(values[0]), string(ctx.Host()))
	}
	switch string(ctx.Request.Header.Peek("Sec-Fetch-Site")) {
	case "", "same-origin", "none": // "": not a browser; "none": a person typed it
		return true
	}
	return false
}

func (o origins) originAllowed(origin, host string) bool {
	if slices.Contains(o.allowed, origin) || (o.own != "" && origin == o.own) {
		return true
	}
	u, err := url.Parse(origin)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || origin != u.Scheme+"://"+u.Host {
		return false
	}
	if o.dev && loopback(u.Host) {
		return true
	}
	port := usualPort(u.Scheme)
	return strings.EqualFold(strings.TrimSuffix(u.Host, port), strings.TrimSuffix(host, port))
}

// originOf is what a browser calls the pages of a public address: a proxy in front need not pass
// its Host on.
func originOf(base string) string {
	u, err := url.Parse(strings.ToLower(base))
	if err != nil || u.Host == "" {
		return ""
	}
	return u.Scheme + "://" + strings.TrimSuffix(u.Host, usualPort(u.Scheme))
}

func usualPort(scheme string) string {
	return map[string]string{"http": ":80", "https": ":443"}[scheme]
}

func (o origins) hostAllowed(host string) bool {
	return loopback(host) || slices.Contains(o.hosts, strings.ToLower(host)) || slices.Contains(o.hosts, strings.ToLower(hostname(host)))
}

// loopback reports whether a Host value names this machine only.
func loopback(host string) bool {
	name := strings.ToLower(hostname(host))
	if name == "localhost" || strings.HasSuffix(name, ".localhost") { // RFC 6761
		return true
	}
	ip, err := netip.ParseAddr(name)
	return err == nil && ip.IsLoopback()
}

// hostname is a Host value without its port and brackets.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
}
