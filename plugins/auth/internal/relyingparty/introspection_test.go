package relyingparty

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth"
)

// introspecting returns a party that introspects tokens at p. answer handles the requests.
func (p *provider) introspecting(metadata map[string]any, answer http.HandlerFunc) *Party {
	discovered := map[string]any{"issuer": issuer, "jwks_uri": issuer + "/jwks", "introspection_endpoint": issuer + "/introspect"}
	for name, value := range metadata {
		discovered[name] = value
	}
	p.pages["/.well-known/openid-configuration"] = discovered
	p.pages["/introspect"] = answer
	return p.party(func(o *Options) { o.Introspect, o.ClientID, o.ClientSecret = true, "us", "a b+c" })
}

func says(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
}

func TestATokenIsValidWhileTheProviderReportsItAsActive(t *testing.T) {
	for name, c := range map[string]struct {
		metadata map[string]any
		answer   http.HandlerFunc
		want     error
	}{
		"active":                                  {nil, says(200, `{"active":true}`), nil},
		"active, about the same subject":          {nil, says(200, `{"active":true,"sub":"alice"}`), nil},
		"active, about another subject":           {nil, says(200, `{"active":true,"sub":"bob"}`), plugins.ErrUnauthenticated},
		"not active":                              {nil, says(200, `{"active":false}`), plugins.ErrUnauthenticated},
		"no information about it":                 {nil, says(200, `{}`), plugins.ErrUnavailable},
		"not JSON":                                {nil, says(200, `active`), plugins.ErrUnavailable},
		"text":                                    {nil, says(200, `{"active":"true"}`), plugins.ErrUnavailable},
		"the client is refused":                   {nil, says(401, `{"active":true}`), plugins.ErrUnavailable},
		"the provider fails":                      {nil, says(500, `{"active":true}`), plugins.ErrUnavailable},
		"the provider has no endpoint":            {map[string]any{"introspection_endpoint": ""}, says(200, `{"active":true}`), plugins.ErrUnavailable},
		"an endpoint on another loopback address": {map[string]any{"introspection_endpoint": "http://127.0.0.1/introspect"}, says(200, `{"active":true}`), plugins.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProvider(t)
			party := p.introspecting(c.metadata, c.answer)
			id, err := party.Verify(t.Context(), auth.VerifyRequest{Token: p.token("first"), Audiences: []string{"us"}})
			if !errors.Is(err, c.want) || (id.Subject == "alice") != (c.want == nil) {
				t.Errorf("got %q (%v), want %v", id.Subject, err, c.want)
			}
		})
	}
}

func TestTheProviderIsAskedInItsPreferredWayAndOnlyAboutValidTokens(t *testing.T) {
	for name, c := range map[string]struct {
		metadata map[string]any
		header   bool
	}{
		"by default in the header":                      {nil, true},
		"in the body, as stated for the endpoint":       {map[string]any{"introspection_endpoint_auth_methods_supported": []string{"client_secret_post"}}, false},
		"in the body, as stated for the token endpoint": {map[string]any{"token_endpoint_auth_methods_supported": []string{"client_secret_post"}}, false},
		"in the header, as stated for the endpoint": {map[string]any{
			"introspection_endpoint_auth_methods_supported": []string{"client_secret_basic"}, "token_endpoint_auth_methods_supported": []string{"client_secret_post"},
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProvider(t)
			good := p.token("first")
			party := p.introspecting(c.metadata, func(w http.ResponseWriter, r *http.Request) {
				id, secret, header := r.BasicAuth()
				if !header {
					id, secret = r.FormValue("client_id"), r.FormValue("client_secret")
				} else if secret == "a+b%2Bc" {
					secret = "a b+c"
				}
				if got := r.Header.Get("Accept"); got != "application/json" {
					t.Errorf("the request is for %q", got)
				}
				if r.Method != http.MethodPost || header != c.header || id != "us" || secret != "a b+c" || r.FormValue("token") != good || r.FormValue("token_type_hint") != "access_token" {
					t.Errorf("%s with %v, %v: the client is %q, %q", r.Method, r.Header, r.Form, id, secret)
				}
				_ = json.NewEncoder(w).Encode(map[string]any{"active": true})
			})
			for token, asked := range map[string]int{good: 1, p.token("forged"): 0, p.token("first", map[string]any{"aud": "other"}): 0, "": 0} {
				before := p.count("/introspect")
				_, err := party.Verify(t.Context(), auth.VerifyRequest{Token: token, Audiences: []string{"us"}})
				if n := p.count("/introspect") - before; n != asked || (err == nil) != (asked == 1) {
					t.Errorf("the provider got %d requests, want %d (%v)", n, asked, err)
				}
			}
		})
	}
}

// A token that cannot be introspected is not accepted, and the error says what is wrong.
func TestATokenIsNotAcceptedWhileTheProviderIsUnreachable(t *testing.T) {
	for name, c := range map[string]struct {
		document any
		says     string
	}{
		"no metadata":                   {http.HandlerFunc(http.NotFound), "metadata"},
		"metadata without the endpoint": {map[string]any{"issuer": issuer}, "introspection_endpoint, which the introspect setting needs"},
		"an endpoint that fails":        {map[string]any{"issuer": issuer, "introspection_endpoint": issuer + "/introspect"}, "/introspect returned 500"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProvider(t)
			p.pages["/.well-known/openid-configuration"], p.pages["/introspect"] = c.document, says(500, `{"active":true}`)
			party := p.party(func(o *Options) {
				o.Introspect, o.ClientID, o.ClientSecret, o.JWKSURI = true, "us", "secret", issuer+"/jwks"
			})
			id, err := party.Verify(t.Context(), auth.VerifyRequest{Token: p.token("first"), Audiences: []string{"us"}})
			if !errors.Is(err, plugins.ErrUnavailable) || !strings.Contains(err.Error(), c.says) || id.Subject != "" {
				t.Errorf("got %+v, %v", id, err)
			}
		})
	}
}

// answered returns the response of a page.
func answered(page any, req *http.Request) *http.Response {
	rec := httptest.NewRecorder()
	if handler, ok := page.(http.HandlerFunc); ok {
		handler(rec, req)
	} else {
		_ = json.NewEncoder(rec).Encode(page)
	}
	return rec.Result()
}
