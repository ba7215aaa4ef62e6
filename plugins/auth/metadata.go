package auth

import (
	"net/url"
	"strings"
)

// MetadataURLs returns the URLs where the metadata of an issuer may be, in the order to try them: RFC 8414 section 3.1, then
// OpenID Connect Discovery with the issuer's path inserted, then appended. It returns none if the issuer is not a URL.
func MetadataURLs(issuer string) []string {
	u, err := url.Parse(issuer)
	if err != nil {
		return nil
	}
	base, path := u.Scheme+"://"+u.Host, strings.TrimSuffix(u.EscapedPath(), "/")
	places := []string{
		base + "/.well-known/oauth-authorization-server" + path,
		base + "/.well-known/openid-configuration" + path,
	}
	if path != "" {
		places = append(places, base+path+"/.well-known/openid-configuration")
	}
	return places
}
