package httpapi

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"
)

// clientAddress is who is at the other end: the peer, or, when that is a trusted proxy, the last
// address of X-Forwarded-For that is none. What stands further left was written by the client.
func (s *Server) clientAddress(c *fiber.Ctx) string {
	peer, ok := netip.AddrFromSlice(c.Context().RemoteIP())
	if !ok {
		return c.Context().RemoteIP().String()
	}
	peer = peer.Unmap()
	var hops []string
	for _, line := range c.Context().Request.Header.PeekAll(fiber.HeaderXForwardedFor) {
		hops = append(hops, strings.Split(string(line), ",")...)
	}
	for _, hop := range slices.Backward(hops) {
		if !s.trusted(peer) {
			break
		}
		address, err := netip.ParseAddr(strings.TrimSpace(hop))
		if err != nil {
			break
		}
		peer = address.Unmap().WithZone("")
	}
	return peer.String()
}

// scheme is the one the client connected with; a trusted proxy says so in X-Forwarded-Proto.
func (s *Server) scheme(c *fiber.Ctx) string {
	peer, ok := netip.AddrFromSlice(c.Context().RemoteIP())
	first, _, _ := strings.Cut(c.Get(fiber.HeaderXForwardedProto), ",") // a chain of proxies lists the client's first
	if ok && s.trusted(peer.Unmap()) && strings.EqualFold(strings.TrimSpace(first), "https") {
		return "https"
	}
	return "http"
}

func (s *Server) trusted(peer netip.Addr) bool {
	return slices.ContainsFunc(s.options.TrustedProxies, func(p netip.Prefix) bool { return p.Contains(peer) })
}
