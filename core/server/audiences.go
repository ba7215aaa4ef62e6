package server

import (
	"net"
	"strconv"

	"github.com/ropewalk/ropewalk/core/config"
)

// audiences returns the accepted audiences of tokens: the server's base URL with and without a slash,
// the URL of /mcp, the client id, and those of the configuration. Without a configured base URL every
// address of the server counts as one.
func audiences(c *config.Config, addr *net.TCPAddr) []string {
	bases := []string{c.HTTP.BaseURL}
	if c.HTTP.BaseURL == "" {
		bases = bases[:0]
		for _, host := range append(loopbackNames(addr), c.HTTP.AllowedHosts...) {
			bases = append(bases, "http://"+host, "https://"+host)
		}
	}
	all := append([]string{}, c.Auth.Audiences...)
	if c.Auth.ClientID != "" {
		all = append(all, c.Auth.ClientID)
	}
	for _, base := range bases {
		all = append(all, base, base+"/", base+"/mcp")
	}
	return all
}

func loopbackNames(addr *net.TCPAddr) []string {
	port := strconv.Itoa(addr.Port)
	names := []string{addr.String()}
	if addr.IP.IsLoopback() || addr.IP.IsUnspecified() {
		for _, host := range []string{"localhost", "127.0.0.1", "::1"} {
			names = append(names, net.JoinHostPort(host, port))
		}
	}
	return names
}
