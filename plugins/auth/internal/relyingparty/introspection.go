package relyingparty

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/oauth2"
)

// introspect asks the provider whether a token with a valid signature and claims is still active (RFC 7662). A provider
// that does not give a clear answer is treated as unavailable.
func (p *Party) introspect(ctx context.Context, compact string, claims Claims) error {
	doc, err := p.document.get(ctx)
	if err != nil {
		return err
	}
	if doc.IntrospectionEndpoint == "" {
		return unavailable("the provider's metadata has no introspection_endpoint, which the introspect setting needs")
	}
	form := url.Values{"token": {compact}, "token_type_hint": {"access_token"}}
	methods := doc.IntrospectionAuthMethods
	if len(methods) == 0 {
		methods = doc.TokenAuthMethods
	}
	header := p.style(methods) == oauth2.AuthStyleInHeader
	if !header {
		form.Set("client_id", p.options.ClientID)
		form.Set("client_secret", p.options.ClientSecret)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, doc.IntrospectionEndpoint, strings.NewReader(form.Encode()))
	if err != nil {
		return unavailable("the provider's introspection endpoint: %w", err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	if header {
		req.SetBasicAuth(url.QueryEscape(p.options.ClientID), url.QueryEscape(p.options.ClientSecret)) // RFC 6749 section 2.3.1
	}
	answer, err := p.readIntrospection(req)
	switch {
	case err != nil:
		return unavailable("the request to the provider's introspection endpoint failed: %w", err)
	case !*answer.Active:
		return refuse("the provider reports that the token is no longer active")
	case answer.Subject != "" && answer.Subject != claims.Text("sub"):
		return refuse("the provider reports that the token is about another subject")
	}
	return nil
}

// introspection is the part of an RFC 7662 section 2.2 response that is used.
type introspection struct {
	Active  *bool  `json:"active"`
	Subject string `json:"sub"`
}

func (p *Party) readIntrospection(req *http.Request) (answer introspection, err error) {
	body, err := readAnswer(p.client, req, documentLimit)
	if err != nil {
		return answer, err
	}
	if err := json.Unmarshal(body, &answer); err != nil || answer.Active == nil {
		return answer, fmt.Errorf("%s did not report whether the token is active", req.URL)
	}
	return answer, nil
}
