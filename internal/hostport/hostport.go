// Package hostport checks the host and the port of addresses that people write into a configuration or a
// request. It resolves nothing.
package hostport

import (
	"errors"
	"net/url"
	"strconv"
	"strings"
)

// Check returns an error unless a URL has a host, and a port from 1 to 65535 or none. net/url takes an empty
// port, which a variable that is not set leaves behind, and a port of any size.
func Check(u *url.URL) error {
	switch port := u.Port(); {
	case u.Hostname() == "":
		return errors.New("has no host")
	case port == "" && strings.HasSuffix(u.Host, ":"):
		return errors.New("has a colon without a port behind its host")
	case port != "":
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return errors.New("has a port that is not from 1 to 65535")
		}
	}
	return nil
}
