package webguard

import (
	"encoding/base64"
	"encoding/hex"
	"net/netip"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"
)

// Scheme returns the scheme that the client used: https or http. X-Forwarded-Proto is trusted only from trusted
// proxies. If a chain of them lists several schemes, the first is the client's.
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

// Trusted reports whether an address belongs to a trusted proxy.
func (p *Policy) Trusted(peer netip.Addr) bool {
	return slices.ContainsFunc(p.TrustedProxies, func(prefix netip.Prefix) bool { return prefix.Contains(peer) })
}

// ClientAddress returns the address of the client: the peer's, unless the peer is a trusted proxy. In that case
// it is the last address in X-Forwarded-For that is not a trusted proxy. The client could have forged
// everything to its left.
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

// Address returns the public address of the server without a trailing slash: the configured one, or else the
// one that the client used.
func (p *Policy) Address(ctx *fasthttp.RequestCtx) string {
	if p.BaseURL != "" {
		return strings.TrimSuffix(p.BaseURL, "/")
	}
	return p.Scheme(ctx) + "://" + string(ctx.Request.Header.Host())
}

// ClientCertificate returns the SHA-256 of the certificate that the client presented to a trusted proxy, in base64url
// without padding, or "" if there is none. The proxy sends it in X-Forwarded-Client-Cert, and must strip any value that
// the client sent. A header with several certificates is ignored.
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
