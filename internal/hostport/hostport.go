// Package hostport checks the host and port of addresses that people enter in a configuration or a request. It
// does not resolve names.
package hostport

import (
	"errors"
	"net/url"
	"strconv"
	"strings"
)

// Check returns an error unless a URL has a host, and either no port or one from 1 to 65535. net/url accepts an
// empty port, which an unset variable leaves behind, and a port of any size.
func Check(u *url.URL) error {
	switch port := u.Port(); {
	case u.Hostname() == "":
		return errors.New("has no host")
	case port == "" && strings.HasSuffix(u.Host, ":"):
		return errors.New("has a colon but no port after its host")
	case port != "":
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return errors.New("has a port that is not from 1 to 65535")
		}
	}
	return nil
}
