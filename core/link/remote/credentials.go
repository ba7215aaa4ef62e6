package remote

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/ropewalk/ropewalk/core"
	"github.com/ropewalk/ropewalk/core/headerparam"
)

func checkURL(raw string) (*url.URL, error) {
	target, err := url.Parse(raw)
	switch {
	case err != nil: // the error would include the URL
		return nil, fmt.Errorf("url is not a valid URL")
	case target.Scheme != "http" && target.Scheme != "https" || target.Host == "":
		return nil, fmt.Errorf("url must begin with http:// or https:// and contain a host")
	case target.User != nil:
		return nil, fmt.Errorf("url must not contain a user name or password; use transport.auth")
	}
	target.Fragment = ""
	return target, nil
}

// reservedHeader reports whether the transport sets this header itself.
func reservedHeader(key string) bool {
	switch key {
	case "Accept", "Connection", "Content-Length", "Content-Type", "Host", "Keep-Alive", "Last-Event-Id",
		"Mcp-Protocol-Version", "Mcp-Session-Id", headerMethod, headerName, "Te", "Trailer", "Transfer-Encoding", "Upgrade":
		return true
	}
	return strings.HasPrefix(key, "Proxy-") || strings.HasPrefix(key, headerparam.Prefix)
}

// CheckHeader returns an error if a header cannot be sent to a remote app. The error begins with field, the setting
// that contains the header, and never includes the value.
func CheckHeader(field, name string, value core.Secret) error {
	switch key := http.CanonicalHeaderKey(name); {
	case !httpguts.ValidHeaderFieldName(name):
		return fmt.Errorf("%s: %.100q is not a header name", field, name)
	case reservedHeader(key):
		return fmt.Errorf("%s: the header %s is set by the transport", field, name)
	case !httpguts.ValidHeaderFieldValue(value.Reveal()):
		return fmt.Errorf("%s: the value of the header %s contains a control character", field, key)
	}
	return nil
}

// configuredHeaders returns the headers for a remote app, including its credentials.
func configuredHeaders(r core.Remote) (http.Header, error) {
	header := http.Header{}
	add := func(field, name string, value core.Secret) error {
		if err := CheckHeader(field, name, value); err != nil {
			return err
		}
		header.Set(name, value.Reveal())
		return nil
	}
	for name, value := range r.Headers {
		if r.Auth.Replaces(name) { // a record written by an older version may still have it
			continue
		}
		if err := add("transport.headers", name, value); err != nil {
			return nil, err
		}
	}
	switch r.Auth.Type {
	case "", "none", core.AuthUser, core.AuthShared, core.AuthExchange: // account tokens come from Options.Authorizer
		return header, nil
	case "bearer":
		if r.Auth.Token == "" {
			return nil, fmt.Errorf("transport.auth.token is missing")
		}
		return header, add("transport.auth.token", "Authorization", "Bearer "+r.Auth.Token)
	case "header":
		return header, add("transport.auth", r.Auth.Name, r.Auth.Value)
	}
	return nil, fmt.Errorf("transport.auth.type %q is unknown; use bearer, header, user, shared or none", r.Auth.Type)
}
