package server

import (
	"net"
	"strconv"

	"github.com/ropewalk/ropewalk/core/config"
)

// audiences returns the audiences that are accepted in the tokens of every provider: the server's base URL
// with and without a slash, and the URL of /mcp. Without a configured base URL every address of the server
// counts as one.
func audiences(c *config.Config, addr *net.TCPAddr) []string {
	bases := []string{c.HTTP.BaseURL}
	if c.HTTP.BaseURL == "" {
		bases = bases[:0]
		for _, host := range append(loopbackNames(addr), c.HTTP.AllowedHosts...) {
			bases = append(bases, "http://"+host, "https://"+host)
		}
	}
	var all []string
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
