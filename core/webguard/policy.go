package webguard

import (
	"net/netip"
	"net/url"
)

// Policy describes the names and environment of a server. It is safe for concurrent use.
type Policy struct {
	Dev            bool           // there is no authentication: pages served by this machine may make requests, and requests with an unknown Host are rejected
	Hosts          []string       // Host values accepted in addition to loopback names: host or host:port, lower case
	Origins        []string       // origins whose pages may make requests, in addition to the server's own: scheme://host[:port], lower case
	TrustedProxies []netip.Prefix // proxies whose X-Forwarded-For and X-Forwarded-Proto are trusted
	BaseURL        string         // the public address; "" if it is not configured

	// UnknownTLS accepts an https Origin of the server's own host on a request that arrived over http: TLS may
	// end at a proxy that is not among TrustedProxies.
	UnknownTLS bool
}

// public returns the configured address, or nil if there is none.
func (p *Policy) public() *url.URL {
	if p.BaseURL == "" {
		return nil
	}
	base, err := url.Parse(p.BaseURL)
	if err != nil || base.Host == "" {
		return nil
	}
	return base
}
