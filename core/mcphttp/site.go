package mcphttp

import (
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"
)

// site knows under which names this endpoint may be called, and from which pages: the defence
// against DNS rebinding and foreign origins (hardening row 17).
type site struct {
	proxies []netip.Prefix
	hosts   []string
	origins []string
	base    func() string
	dev     func() bool
}

func newSite(o Options) site {
	base := o.BaseURL
	if base == nil {
		base = func() string { return "" }
	}
	return site{proxies: o.TrustedProxies, hosts: o.AllowedHosts, origins: o.AllowedOrigins, base: base, dev: o.Access.Dev}
}

// scheme is what the client connected on. X-Forwarded-Proto counts from trusted proxies only.
func (s site) scheme(c *fiber.Ctx) string {
	if c.Context().IsTLS() {
		return "https"
	}
	proto := strings.ToLower(strings.TrimSpace(firstOf(c.Get(fiber.HeaderXForwardedProto))))
	if (proto == "https" || proto == "http") && s.trusted(c.Context().RemoteIP()) {
		return strings.Clone(proto)
	}
	return "http"
}

func firstOf(list string) string {
	first, _, _ := strings.Cut(list, ",")
	return first
}

func (s site) trusted(ip net.IP) bool {
	addr, ok := netip.AddrFromSlice(ip)
	addr = addr.Unmap()
	return ok && slices.ContainsFunc(s.proxies, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// baseURL is the public address, without a trailing slash.
func (s site) baseURL(c *fiber.Ctx) string {
	if base := s.base(); base != "" {
		return strings.TrimSuffix(base, "/")
	}
	return s.scheme(c) + "://" + strings.Clone(c.Get(fiber.HeaderHost))
}

// admits reports whether the request's Host and Origin are ones this endpoint serves.
func (s site) admits(c *fiber.Ctx) bool {
	host := strings.ToLower(c.Get(fiber.HeaderHost))
	return s.hostAllowed(host, c.Context().LocalIP()) && s.originAllowed(c, host)
}

// hostAllowed: names of this machine, and configured ones. On an address other machines reach,
// any well-formed name will do unless names are configured: there the token is the protection.
func (s site) hostAllowed(host string, local net.IP) bool {
	name, ok := hostname(host)
	if !ok {
		return false
	}
	if loopback(name) || slices.Contains(s.hosts, host) || slices.Contains(s.hosts, name) {
		return true
	}
	if base := s.public(); base != nil && (strings.EqualFold(base.Host, host) || strings.EqualFold(base.Hostname(), name)) {
		return true
	}
	return len(s.hosts) == 0 && !local.IsLoopback() && !s.dev()
}

// public is the configured address, nil when there is none.
func (s site) public() *url.URL {
	base, err := url.Parse(s.base())
	if err != nil || base.Host == "" {
		return nil
	}
	return base
}

// originAllowed: no Origin (not a browser, or not from elsewhere), the endpoint's own, a configured
// one, and in dev mode pages that this machine serves.
func (s site) originAllowed(c *fiber.Ctx, host string) bool {
	origins := c.Request().Header.PeekAll(fiber.HeaderOrigin)
	if len(origins) == 0 {
		return c.Method() == fiber.MethodGet || !fromElsewhere(c)
	}
	origin := strings.ToLower(string(origins[0]))
	from, err := url.Parse(origin)
	if err != nil || len(origins) > 1 || from.Host == "" || origin != from.Scheme+"://"+from.Host {
		return false // null, none, or no origin of a page
	}
	if slices.Contains(s.origins, origin) || origin == s.scheme(c)+"://"+host {
		return true
	}
	if base := s.public(); base != nil && strings.EqualFold(origin, base.Scheme+"://"+withoutUsualPort(base)) {
		return true
	}
	return s.dev() && (from.Scheme == "http" || from.Scheme == "https") && loopback(from.Hostname())
}

// withoutUsualPort is an address's host as browsers write it.
func withoutUsualPort(u *url.URL) string {
	return strings.TrimSuffix(u.Host, map[string]string{"http": ":80", "https": ":443"}[u.Scheme])
}

// fromElsewhere reports whether a browser says that another site's page made the request.
func fromElsewhere(c *fiber.Ctx) bool {
	site := c.Get("Sec-Fetch-Site")
	return site != "" && site != "same-origin" && site != "none" // "none": a person typed it
}

// hostname splits the port off a Host value and refuses what no host can be: the value is echoed
// in headers and documents.
func hostname(host string) (string, bool) {
	name := host
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		port := host[i+1:]
		name = host[:i]
		if port == "" || strings.Trim(port, "0123456789") != "" {
			return "", false
		}
	}
	if inner, ok := strings.CutPrefix(name, "["); ok {
		addr, err := netip.ParseAddr(strings.TrimSuffix(inner, "]"))
		return addr.String(), err == nil && addr.Is6() && addr.Zone() == "" && strings.HasSuffix(inner, "]")
	}
	return name, name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789.-_") == ""
}

func loopback(name string) bool {
	if name == "localhost" || strings.HasSuffix(name, ".localhost") { // RFC 6761
		return true
	}
	addr, err := netip.ParseAddr(name)
	return err == nil && addr.Unmap().IsLoopback()
}
