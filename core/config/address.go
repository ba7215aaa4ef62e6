package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/ropewalk/ropewalk/internal/hostport"
)

var hostName = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)

const callbackPath = "/v1/auth/callback"

// Loopback reports whether a listening host is reachable only from this machine.
func Loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && addr.Unmap().IsLoopback()
}

func (k *check) checkHTTP() {
	in, out := k.doc.HTTP, &k.cfg.HTTP
	if !validHost(in.Host) {
		k.add("http.host", "must be a host name or an address, without a port")
	}
	if in.BaseURL != "" {
		base, err := webAddress(in.BaseURL)
		switch {
		case err != nil:
			k.add("http.baseUrl", "%v", err)
		case base.RawQuery != "" || base.Fragment != "":
			k.add("http.baseUrl", "must not have a query or a fragment")
		default:
			out.BaseURL = strings.TrimRight(in.BaseURL, "/")
		}
	}
	out.Console = in.Console
	if in.TLS.CertFile != "" && in.TLS.KeyFile != "" { // the schema requires both
		base := filepath.Dir(k.cfg.File)
		out.TLS = TLS{CertFile: absolute(base, in.TLS.CertFile), KeyFile: absolute(base, in.TLS.KeyFile)}
	}
	if in.Metrics != "" {
		k.checkMetrics(in.Metrics)
	}
	if in.ViewOrigin != "" {
		origin, err := parseOrigin(in.ViewOrigin)
		if err != nil {
			k.add("http.viewOrigin", "%v", err)
		}
		out.ViewOrigin = origin
	}
	for i, text := range in.TrustedProxies {
		prefix, err := network(text)
		if err != nil {
			k.add(fmt.Sprintf("http.trustedProxies[%d]", i), "must be an address or a network such as 10.0.0.0/8")
			continue
		}
		if prefix.Bits() == 0 {
			k.warn("http.trustedProxies trusts everyone, so any client can claim another address, host and scheme")
		}
		out.TrustedProxies = append(out.TrustedProxies, prefix)
	}
	for i, text := range in.AllowedHosts {
		host, port, err := net.SplitHostPort(text)
		if err != nil {
			host, port = text, "1"
		}
		if _, err := strconv.ParseUint(port, 10, 16); err != nil || !validHost(host) {
			k.add(fmt.Sprintf("http.allowedHosts[%d]", i), "must be a host or host:port")
			continue
		}
		out.AllowedHosts = append(out.AllowedHosts, strings.ToLower(text))
	}
	for i, text := range in.AllowedOrigins {
		origin, err := parseOrigin(text)
		if err != nil {
			k.add(k.originPath(i), "%v", err)
			continue
		}
		k.cfg.AllowedOrigins = append(k.cfg.AllowedOrigins, origin)
	}
}

// checkMetrics checks the address of the metrics listener.
func (k *check) checkMetrics(address string) {
	host, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil || !validHost(host) {
		k.add("http.metrics", "must be host:port, such as 127.0.0.1:9464")
		return
	}
	if !Loopback(host) {
		k.warn("http.metrics is reachable from other machines without authentication; make sure that only the monitoring system can reach it")
	}
	k.cfg.HTTP.Metrics = address
}

// originPath returns where the i-th origin was set. The environment variable has one place for all of them.
func (k *check) originPath(i int) string {
	path := fmt.Sprintf("http.allowedOrigins[%d]", i)
	if k.cfg.places["http.allowedOrigins"].Line == 0 {
		k.cfg.places[path] = k.cfg.places["http.allowedOrigins"]
	}
	return path
}

// network parses an address or a CIDR network.
func network(text string) (netip.Prefix, error) {
	if addr, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(addr.WithZone(""), addr.BitLen()), nil
	}
	prefix, err := netip.ParsePrefix(text)
	return prefix.Masked(), err
}

// validHost reports whether text is a name or an address without a port.
func validHost(text string) bool {
	if _, err := netip.ParseAddr(strings.Trim(text, "[]")); err == nil {
		return true
	}
	return len(text) <= 253 && hostName.MatchString(text)
}

// webAddress parses an absolute http or https URL. Its errors never show the text.
func webAddress(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, errors.New("must be an absolute address that starts with https:// or http://")
	}
	if u.User != nil {
		return nil, errors.New("must not contain a user name or password")
	}
	return u, hostport.Check(u)
}

// parseOrigin parses a web origin (RFC 6454): scheme://host[:port] and nothing else.
func parseOrigin(text string) (string, error) {
	if text == "*" {
		return "", errors.New("* cannot be combined with credentials; list the origins")
	}
	u, err := webAddress(text)
	if err != nil {
		return "", errors.New("must be an origin such as https://app.example.com")
	}
	if u.Path != "" || u.RawQuery != "" || u.Fragment != "" || strings.HasSuffix(text, "#") || strings.HasSuffix(text, "?") {
		return "", errors.New("must be just an origin, scheme://host[:port], without a path or a trailing slash")
	}
	if !validHost(u.Hostname()) {
		return "", errors.New("must be an origin such as https://app.example.com")
	}
	host := strings.ToLower(u.Host)
	if u.Scheme == "https" {
		host = strings.TrimSuffix(host, ":443")
	} else {
		host = strings.TrimSuffix(host, ":80")
	}
	return u.Scheme + "://" + host, nil
}
