package relyingparty

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/plugins/auth"
)

const (
	documentLimit = 256 << 10
	documentFresh = time.Hour
	documentKeep  = 7 * 24 * time.Hour
)

// document is the part of the provider's metadata that is used (RFC 8414, OpenID Connect Discovery 1.0).
type document struct {
	Issuer                string   `json:"issuer"`
	JWKSURI               string   `json:"jwks_uri"`
	AuthorizationEndpoint string   `json:"authorization_endpoint"`
	TokenEndpoint         string   `json:"token_endpoint"`
	UserinfoEndpoint      string   `json:"userinfo_endpoint"`
	TokenAuthMethods      []string `json:"token_endpoint_auth_methods_supported"`

	IntrospectionEndpoint    string   `json:"introspection_endpoint"`
	IntrospectionAuthMethods []string `json:"introspection_endpoint_auth_methods_supported"`

	raw json.RawMessage
}

// discover returns the first valid document about issuer. If needKeys is set, it must contain the URL of the keys.
func discover(ctx context.Context, client *http.Client, issuer string, needKeys bool) (document, error) {
	var problems []error
	for _, place := range auth.MetadataURLs(issuer) {
		doc, err := readDocument(ctx, client, place)
		if err == nil {
			err = doc.check(place, issuer, needKeys)
		}
		if err == nil {
			return doc, nil
		}
		problems = append(problems, err)
		if _, failed := errors.AsType[*url.Error](err); failed && !errors.Is(err, errRedirect) {
			break // no response, and the other URLs are on the same host
		}
	}
	return document{}, errors.Join(problems...)
}

func readDocument(ctx context.Context, client *http.Client, place string) (document, error) {
	body, err := Fetch(ctx, client, place, "", documentLimit)
	if err != nil {
		return document{}, err
	}
	var doc document
	if err := json.Unmarshal(body, &doc); err != nil {
		return document{}, fmt.Errorf("%s is not a metadata document: %w", place, err)
	}
	doc.raw = body
	return doc, nil
}

// check checks that a document is about issuer (identical, not merely equivalent: RFC 8414 section 3.3), and checks its
// endpoints: a document on the public network must not contain http endpoints.
func (d document) check(place, issuer string, needKeys bool) error {
	if d.Issuer != issuer {
		return fmt.Errorf("%s is about the issuer %q, not %q: write the issuer exactly as the provider does", place, d.Issuer, issuer)
	}
	if needKeys && d.JWKSURI == "" {
		return fmt.Errorf("%s has no jwks_uri", place)
	}
	for name, address := range map[string]string{
		"jwks_uri": d.JWKSURI, "authorization_endpoint": d.AuthorizationEndpoint, "token_endpoint": d.TokenEndpoint,
		"userinfo_endpoint": d.UserinfoEndpoint, "introspection_endpoint": d.IntrospectionEndpoint,
	} {
		if err := checkEndpoint(address, issuer); address != "" && err != nil {
			return fmt.Errorf("%s: %s %q %w", place, name, address, err)
		}
	}
	return nil
}

// checkEndpoint is CheckURL for a URL from a provider's document: it may have a query, and may be on loopback only if
// the issuer is.
func checkEndpoint(address, issuer string) error {
	bare, _, _ := strings.Cut(address, "?")
	if err := CheckURL(bare); err != nil {
		return err
	}
	if OnLoopback(bare) && !OnLoopback(issuer) {
		return errors.New("is on loopback although the issuer is not")
	}
	return nil
}
