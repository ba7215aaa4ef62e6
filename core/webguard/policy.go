package webguard

import (
	"net/netip"
	"net/url"
)

// Policy describes the names and surroundings of a server. It is safe for concurrent use.
type Policy struct {
	Dev            bool           // nobody proves anything: pages of this machine may act, and no unknown Host is served
	Hosts          []string       // Host values served besides loopback ones: host or host:port, lower case
	Origins        []string       // pages that may act besides the server's own: scheme://host[:port], lower case
	TrustedProxies []netip.Prefix // whose X-Forwarded-For and X-Forwarded-Proto count
	BaseURL        string         // the public address; "" when it is not configured

	// UnknownTLS lets the server's own pages over https call it over http: TLS may end at a proxy that is
	// not trusted to say so.
	UnknownTLS bool
}

// public is the configured address, nil when there is none.
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
