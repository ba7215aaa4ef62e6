package webguard

import (
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"
)

// HostAllowed reports whether the request's Host is a name of this server: a loopback name, a configured one or
// the public address. On an address that other machines can reach, any well-formed name is accepted unless
// names are configured, because the token protects the server. In dev mode there is no token, so these names
// are rejected.
func (p *Policy) HostAllowed(ctx *fasthttp.RequestCtx) bool {
	return p.hostAllowed(strings.ToLower(string(ctx.Request.Header.Host())), ctx.LocalIP())
}

func (p *Policy) hostAllowed(host string, local net.IP) bool {
	name, ok := hostname(host)
	if !ok {
		return false
	}
	if loopback(name) || slices.Contains(p.Hosts, host) || slices.Contains(p.Hosts, name) {
		return true
	}
	if base := p.public(); base != nil && (strings.EqualFold(base.Host, host) || strings.EqualFold(base.Hostname(), name)) {
		return true
	}
	return len(p.Hosts) == 0 && !local.IsLoopback() && !p.Dev
}

// Loopback reports whether a Host value, with or without a port, refers only to this machine.
func Loopback(host string) bool {
	name, ok := hostname(strings.ToLower(host))
	return ok && loopback(name)
}

func loopback(name string) bool {
	if name == "localhost" || strings.HasSuffix(name, ".localhost") { // RFC 6761
		return true
	}
	addr, err := netip.ParseAddr(name)
	return err == nil && addr.Unmap().IsLoopback()
}

// hostname returns the lower-case name in a Host value, without the port. It rejects a value that cannot be a
// host, because the value is repeated in headers and documents.
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
