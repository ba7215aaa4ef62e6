package remote

import (
	"net/netip"
	"syscall"

	"code.dny.dev/ssrf"
)

// dialGuard returns the check of each address that is dialled, after its name was resolved. It refuses
// loopback, private, link-local and other special addresses.
func dialGuard(allowPrivate bool) func(network, address string, c syscall.RawConn) error {
	options := []ssrf.Option{ssrf.WithAnyPort()}
	if allowPrivate {
		options = append(options,
			ssrf.WithAllowedV4Prefixes(prefixes("127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10")...),
			ssrf.WithAllowedV6Prefixes(prefixes("::1/128", "fc00::/7")...))
	}
	return ssrf.New(options...).Safe
}

func prefixes(list ...string) []netip.Prefix {
	parsed := make([]netip.Prefix, len(list))
	for i, p := range list {
		parsed[i] = netip.MustParsePrefix(p)
	}
	return parsed
}
