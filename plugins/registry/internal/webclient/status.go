package webclient

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"

	"github.com/ropewalk/ropewalk/plugins"
)

// refusal returns the error for a response with a status other than 200.
func refusal(resp *http.Response, body []byte) error {
	from := resp.Request.URL
	switch resp.StatusCode {
	case http.StatusNotFound, http.StatusGone:
		if bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")) {
			return fmt.Errorf("%w: %s does not have it", plugins.ErrNotFound, from.Host)
		}
		return unavailable(from, "returned %d without a registry's error object: check the url setting", resp.StatusCode)
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		return fmt.Errorf("%w: %s refused the request (%d)", plugins.ErrInvalid, from.Host, resp.StatusCode)
	case http.StatusUnauthorized, http.StatusForbidden:
		return unavailable(from, "returned %d: check the token setting", resp.StatusCode)
	default:
		return unavailable(from, "returned %d", resp.StatusCode)
	}
}

// unavailable returns a plugins.ErrUnavailable that names only the host, because the full URL may be signed.
func unavailable(from *url.URL, format string, args ...any) error {
	return fmt.Errorf("%w: %s %w", plugins.ErrUnavailable, from.Host, fmt.Errorf(format, args...))
}
