package remote

import (
	"net/http"
	"net/url"
	"strings"
)

const maxRedirects = 5

// sameOrigin reports whether two URLs have one origin. It also allows the change from http to https on
// the standard ports, which protects the credentials better.
func sameOrigin(from, to *url.URL) bool {
	if from.Scheme == to.Scheme {
		return strings.EqualFold(from.Host, to.Host)
	}
	return from.Scheme == "http" && to.Scheme == "https" && from.Port() == "" && to.Port() == "" &&
		strings.EqualFold(from.Hostname(), to.Hostname())
}

// checkRedirect implements http.Client.CheckRedirect. A redirect of a remote app to another origin is
// refused, because the request carries the app's credentials; so is one that changes the method.
func (c *roundTripper) checkRedirect(r *http.Request, via []*http.Request) error {
	switch {
	case len(via) > maxRedirects:
		return c.failure("redirects too often", nil)
	case !sameOrigin(c.origin, r.URL):
		return c.failure("redirects to "+r.URL.Host+", which must not receive its credentials: install the app with that URL", nil)
	case r.Method != via[0].Method:
		return c.failure("redirects a "+via[0].Method+" to a "+r.Method, nil)
	}
	return nil
}
