package sandbox

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// The modes of a Network that is not a list of destinations.
const (
	NetworkNone        = "none"         // no connections
	NetworkLoopbackOff = "loopback-off" // only connections to other machines
	NetworkAll         = "all"          // the server's own network, unchecked
)

// Network says which connections an app may make. The zero value is NetworkLoopbackOff.
type Network struct {
	Mode  string   `json:"mode,omitempty"`  // a mode, or "" when Allow is set
	Allow []string `json:"allow,omitempty"` // host:port; host is a name, an address or a prefix, port is a number or *

	// Also lists destinations on this machine that NetworkLoopbackOff allows, in the same format as Allow. Their names
	// may resolve to addresses of this machine, because the person who configured the server chose these names.
	Also []string `json:"also,omitempty"`

	// Only restricts NetworkLoopbackOff: if it is not empty, apps can connect only to the destinations in it and
	// in Also. It has the format of Allow, and opens nothing on this machine.
	Only []string `json:"only,omitempty"`
}

// ParseNetwork parses the values of a configuration: one mode, or destinations.
func ParseNetwork(values []string) (Network, error) {
	if len(values) == 0 {
		return Network{Mode: NetworkLoopbackOff}, nil
	}
	if len(values) == 1 && slices.Contains([]string{NetworkNone, NetworkLoopbackOff, NetworkAll}, values[0]) {
		return Network{Mode: values[0]}, nil
	}
	for _, v := range values {
		if _, _, err := splitDestination(v); err != nil {
			return Network{}, err
		}
	}
	return Network{Allow: values}, nil
}

// Values returns the network in the form that ParseNetwork parses.
func (n Network) Values() []string {
	if len(n.Allow) > 0 {
		return n.Allow
	}
	return []string{n.mode()}
}

// destinations returns the only destinations that an app may connect to, or nil if there is no such list.
func (n Network) destinations() []string {
	switch {
	case n.mode() == "list":
		return n.Allow
	case n.mode() == NetworkLoopbackOff && len(n.Only) > 0:
		return slices.Concat(n.Only, n.Also)
	default:
		return nil
	}
}

func (n Network) mode() string {
	switch {
	case len(n.Allow) > 0:
		return "list"
	case n.Mode == "":
		return NetworkLoopbackOff
	default:
		return n.Mode
	}
}

func splitDestination(s string) (host string, port uint16, err error) {
	host, text, err := net.SplitHostPort(s)
	if err == nil && text == "*" {
		return host, 0, nil
	}
	n, portErr := strconv.ParseUint(text, 10, 16)
	if err != nil || portErr != nil || n == 0 || host == "" {
		return "", 0, fmt.Errorf("%q is not a destination: use none, loopback-off, all, or a list of host:port", s)
	}
	return host, uint16(n), nil
}

// permits reports whether a connection to addr may be made. isOwn reports whether an address belongs to this
// machine; it must return true if it cannot tell.
func (n Network) permits(ctx context.Context, addr netip.AddrPort, isOwn func(netip.Addr) bool, lookup func(context.Context, string) ([]netip.Addr, error)) bool {
	ip := addr.Addr().Unmap().WithZone("")
	switch n.mode() {
	case NetworkAll:
		return true
	case NetworkNone:
		return false
	case NetworkLoopbackOff:
		isListed := func(d string) bool { return isDestination(ctx, d, ip, addr.Port(), lookup) }
		if slices.ContainsFunc(n.Also, isListed) {
			return true
		}
		return !isClosed(ip, isOwn) && (len(n.Only) == 0 || slices.ContainsFunc(n.Only, isListed))
	}
	return slices.ContainsFunc(n.Allow, func(d string) bool {
		// The owner of a domain must not be able to direct connections to this machine.
		return isDestination(ctx, d, ip, addr.Port(), func(ctx context.Context, host string) ([]netip.Addr, error) {
			if isClosed(ip, isOwn) && !strings.EqualFold(host, "localhost") {
				return nil, nil
			}
			return lookup(ctx, host)
		})
	})
}

// isDestination reports whether ip and port match a destination, as parsed by splitDestination.
func isDestination(ctx context.Context, destination string, ip netip.Addr, port uint16, lookup func(context.Context, string) ([]netip.Addr, error)) bool {
	host, wanted, err := splitDestination(destination)
	if err != nil || wanted != 0 && wanted != port {
		return false
	}
	if prefix, err := netip.ParsePrefix(host); err == nil {
		return prefix.Contains(ip)
	}
	if literal, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return literal.Unmap() == ip
	}
	addresses, err := lookup(ctx, host)
	return err == nil && slices.ContainsFunc(addresses, func(a netip.Addr) bool { return a.Unmap() == ip })
}

// mayName reports whether any destination has this port. If so, permits may have to look up its host.
func (n Network) mayName(port uint16) bool {
	return slices.ContainsFunc(slices.Concat(n.Allow, n.Also, n.Only), func(d string) bool {
		_, named, err := splitDestination(d)
		return err == nil && (named == 0 || named == port)
	})
}

// isClosed reports whether an address is open only to apps that list it as a destination: addresses of this
// machine, and those where clouds serve a machine's secrets.
func isClosed(ip netip.Addr, isOwn func(netip.Addr) bool) bool {
	return slices.ContainsFunc(append(embedded(ip), ip), func(a netip.Addr) bool { return isReserved(a) || isOwn(a) })
}

// isReserved reports whether an address is closed on every machine.
func isReserved(ip netip.Addr) bool {
	return ip.IsLoopback() || ip.IsUnspecified() || ip.IsMulticast() || ip.IsLinkLocalUnicast() || slices.Contains(metadataServices(), ip.String())
}

// embedded returns the IPv4 addresses that a translator or tunnel may connect to for an IPv6 address: NAT64 (RFC 6052 and
// 8215), SIIT (RFC 7915), 6to4, Teredo (RFC 4380), ISATAP (RFC 5214) and IPv4-compatible addresses.
func embedded(ip netip.Addr) (all []netip.Addr) {
	raw := ip.As16()
	in := func(prefixes ...string) bool {
		return slices.ContainsFunc(prefixes, func(prefix string) bool { return netip.MustParsePrefix(prefix).Contains(ip) })
	}
	at := func(places ...int) {
		all = append(all, netip.AddrFrom4([4]byte{raw[places[0]], raw[places[1]], raw[places[2]], raw[places[3]]}))
	}
	// An ISATAP address can have any prefix.
	isatap := slices.Contains([]string{"\x00\x00\x5e\xfe", "\x02\x00\x5e\xfe"}, string(raw[8:12]))
	if isatap || in("64:ff9b::/96", "64:ff9b:1::/48", "::ffff:0:0:0/96", "::/96") {
		at(12, 13, 14, 15)
	}
	if in("64:ff9b:1::/48") { // a network may use a longer prefix in it, so the address can be in any of four places
		at(6, 7, 9, 10)
		at(7, 9, 10, 11)
		at(9, 10, 11, 12)
		// In the places that the network does not use, zeros are padding.
		all = slices.DeleteFunc(all, netip.Addr.IsUnspecified)
	}
	if in("2002::/16") {
		at(2, 3, 4, 5)
	}
	if in("2001::/32") { // the server, and the client, whose address is inverted
		at(4, 5, 6, 7)
		all = append(all, netip.AddrFrom4([4]byte{^raw[12], ^raw[13], ^raw[14], ^raw[15]}))
	}
	return all
}

// metadataServices returns the addresses of the clouds' metadata services that are not link-local: those of Amazon
// (instances, and pods in EKS), Google, Oracle (IPv6 and IPv4), Scaleway, Alibaba and Azure.
func metadataServices() []string {
	return []string{"fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254", "fd00:c1::a9fe:a9fe", "192.0.0.192", "fd00:42::42", "100.100.100.200", "168.63.129.16"}
}

func lookupHost(ctx context.Context, host string) ([]netip.Addr, error) {
	return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
}
