package webguard

import (
	"encoding/base64"
	"encoding/hex"
	"net/netip"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"
)

// Scheme is what the client connected with: https or http. X-Forwarded-Proto counts from trusted proxies
// only; a chain of them lists the client's first.
func (p *Policy) Scheme(ctx *fasthttp.RequestCtx) string {
	if ctx.IsTLS() {
		return "https"
	}
	forwarded := ctx.Request.Header.Peek(fasthttp.HeaderXForwardedProto)
	if len(forwarded) == 0 {
		return "http"
	}
	first, _, _ := strings.Cut(string(forwarded), ",")
	if strings.EqualFold(strings.TrimSpace(first), "https") && p.fromTrustedProxy(ctx) {
		return "https"
	}
	return "http"
}

func (p *Policy) fromTrustedProxy(ctx *fasthttp.RequestCtx) bool {
	peer, ok := netip.AddrFromSlice(ctx.RemoteIP())
	return ok && p.Trusted(peer.Unmap())
}

// Trusted reports whether an address is that of a proxy that is believed.
func (p *Policy) Trusted(peer netip.Addr) bool {
	return slices.ContainsFunc(p.TrustedProxies, func(prefix netip.Prefix) bool { return prefix.Contains(peer) })
}

// ClientAddress is the address of the client: the peer's, or, when that is a trusted proxy, the last
// address of X-Forwarded-For that is none. What stands further left was written by the client.
func (p *Policy) ClientAddress(ctx *fasthttp.RequestCtx) string {
	peer, ok := netip.AddrFromSlice(ctx.RemoteIP())
	if !ok {
		return ctx.RemoteIP().String()
	}
	peer = peer.Unmap()
	var hops []string
	for _, line := range ctx.Request.Header.PeekAll(fasthttp.HeaderXForwardedFor) {
		hops = append(hops, strings.Split(string(line), ",")...)
	}
	for _, hop := range slices.Backward(hops) {
		if !p.Trusted(peer) {
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

// Address is the public address of the server without a trailing slash: the configured one, or else
// the one the client used.
func (p *Policy) Address(ctx *fasthttp.RequestCtx) string {
	if p.BaseURL != "" {
		return strings.TrimSuffix(p.BaseURL, "/")
	}
	return p.Scheme(ctx) + "://" + string(ctx.Request.Header.Host())
}

// ClientCertificate is the SHA-256 of the certificate that the client showed to a trusted proxy, base64url without
// padding; "" when there is none. The proxy names it in X-Forwarded-Client-Cert, and must remove what clients
// wrote there: a header with several certificates is not used.
func (p *Policy) ClientCertificate(ctx *fasthttp.RequestCtx) string {
	value, single := Single(&ctx.Request.Header, "X-Forwarded-Client-Cert")
	if !single || len(value) == 0 || strings.Contains(string(value), ",") || !p.fromTrustedProxy(ctx) {
		return ""
	}
	for part := range strings.SplitSeq(string(value), ";") {
		name, text, _ := strings.Cut(strings.TrimSpace(part), "=")
		if sum, err := hex.DecodeString(text); strings.EqualFold(name, "Hash") && err == nil && len(sum) == 32 {
			return base64.RawURLEncoding.EncodeToString(sum)
		}
	}
	return ""
}
