package relyingparty

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/plugins"
	"github.com/ropewalk/ropewalk/plugins/auth"
)

// tokenEndpoint is a provider with a token endpoint, which responds to every request with status and answer.
type tokenEndpoint struct {
	*provider
	status int
	answer map[string]any
	form   url.Values
	header http.Header
}

func (e *tokenEndpoint) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Path != "/token" {
		return e.provider.RoundTrip(req)
	}
	body, _ := io.ReadAll(req.Body)
	e.form, _ = url.ParseQuery(string(body))
	e.header = req.Header
	rec := httptest.NewRecorder()
	rec.Header().Set("Content-Type", "application/json")
	rec.WriteHeader(e.status)
	_ = json.NewEncoder(rec).Encode(e.answer)
	return rec.Result(), nil
}

func exchanging(t *testing.T, methods []string, change func(*Options)) (*tokenEndpoint, *Party) {
	p := newProvider(t)
	p.pages["/.well-known/openid-configuration"] = map[string]any{
		"issuer": issuer, "jwks_uri": issuer + "/jwks", "authorization_endpoint": issuer + "/authorize?tenant=1",
		"token_endpoint": issuer + "/token", "token_endpoint_auth_methods_supported": methods,
	}
	party := p.party(func(o *Options) {
		o.ClientID, o.RedirectURI, o.Scopes = "client", "https://us.example/cb", []string{"openid", "email"}
	}, change)
	e := &tokenEndpoint{provider: p, status: http.StatusOK}
	e.answer = map[string]any{"access_token": "opaque", "token_type": "Bearer", "id_token": e.idToken()}
	party.client.Transport = e
	return e, party
}

func (e *tokenEndpoint) idToken(changes ...map[string]any) string {
	return e.token("first", append([]map[string]any{{"aud": "client", "nonce": "n"}}, changes...)...)
}

func exchange(t *testing.T, party *Party) (auth.Identity, error) {
	return party.Exchange(t.Context(), auth.ExchangeRequest{Code: "code", Nonce: "n", CodeVerifier: "verifier"})
}

func TestABrowserIsSentToTheProvider(t *testing.T) {
	_, party := exchanging(t, nil, func(*Options) {})
	address, err := party.AuthorizeURL(t.Context(), auth.AuthorizeRequest{State: "s", Nonce: "n", CodeChallenge: "c"})
	if err != nil {
		t.Fatal(err)
	}
	want := issuer + "/authorize?tenant=1&client_id=client&code_challenge=c&code_challenge_method=S256&nonce=n" +
		"&redirect_uri=https%3A%2F%2Fus.example%2Fcb&response_type=code&scope=openid+email&state=s"
	if address != want {
		t.Errorf("got  %s\nwant %s", address, want)
	}
	for _, req := range []auth.AuthorizeRequest{{Nonce: "n", CodeChallenge: "c"}, {State: "s", CodeChallenge: "c"}, {State: "s", Nonce: "n"}} {
		if _, err := party.AuthorizeURL(t.Context(), req); !errors.Is(err, plugins.ErrInvalid) {
			t.Errorf("%+v: got %v, want invalid", req, err)
		}
	}
}

func TestClientAuthenticationMethods(t *testing.T) {
	secret := func(o *Options) { o.ClientSecret = "hidden" }
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte("client:hidden"))
	for name, c := range map[string]struct {
		methods      []string
		change       func(*Options)
		header, body string
	}{
		"a public client":                    {nil, func(*Options) {}, "", ""},
		"not stated":                         {nil, secret, basic, ""},
		"both ways":                          {[]string{"client_secret_post", "client_secret_basic"}, secret, basic, ""},
		"in the body only":                   {[]string{"client_secret_post"}, secret, "", "hidden"},
		"public, whatever the metadata says": {[]string{"client_secret_basic"}, func(*Options) {}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			e, party := exchanging(t, c.methods, c.change)
			if _, err := exchange(t, party); err != nil {
				t.Fatal(err)
			}
			if e.header.Get("Authorization") != c.header || e.form.Get("client_secret") != c.body {
				t.Errorf("got %q and %q", e.header.Get("Authorization"), e.form.Get("client_secret"))
			}
			if e.form.Get("code") != "code" || e.form.Get("code_verifier") != "verifier" || e.form.Get("redirect_uri") != "https://us.example/cb" ||
				e.form.Get("grant_type") != "authorization_code" || c.header == "" && e.form.Get("client_id") != "client" {
				t.Errorf("got the form %v", e.form)
			}
		})
	}
}

func TestTheTokensOfALoginAreChecked(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*tokenEndpoint)
		want   error
	}{
		"a valid response":                {func(*tokenEndpoint) {}, nil},
		"no id token":                     {func(e *tokenEndpoint) { delete(e.answer, "id_token") }, plugins.ErrUnauthenticated},
		"an id token for another client":  {func(e *tokenEndpoint) { e.answer["id_token"] = e.idToken(map[string]any{"aud": "other"}) }, plugins.ErrUnauthenticated},
		"issued to another client":        {func(e *tokenEndpoint) { e.answer["id_token"] = e.idToken(map[string]any{"azp": "other"}) }, plugins.ErrUnauthenticated},
		"another nonce":                   {func(e *tokenEndpoint) { e.answer["id_token"] = e.idToken(map[string]any{"nonce": "m"}) }, plugins.ErrUnauthenticated},
		"no nonce":                        {func(e *tokenEndpoint) { e.answer["id_token"] = e.idToken(map[string]any{"nonce": ""}) }, plugins.ErrUnauthenticated},
		"an expired id token":             {func(e *tokenEndpoint) { e.answer["id_token"] = e.idToken(map[string]any{"exp": 1}) }, plugins.ErrUnauthenticated},
		"a refused code":                  {func(e *tokenEndpoint) { e.status = 400; e.answer = map[string]any{"error": "invalid_grant"} }, plugins.ErrUnauthenticated},
		"a provider in trouble":           {func(e *tokenEndpoint) { e.status = 503 }, plugins.ErrUnavailable},
		"a provider that was too slow":    {func(e *tokenEndpoint) { e.status = 408 }, plugins.ErrUnavailable},
		"a provider that limits requests": {func(e *tokenEndpoint) { e.status = 429 }, plugins.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			e, party := exchanging(t, nil, func(o *Options) { o.ClientSecret = "hidden" })
			c.change(e)
			id, err := exchange(t, party)
			if !errors.Is(err, c.want) || err == nil && id.Subject != "alice" {
				t.Errorf("got %+v, %v, want %v", id, err, c.want)
			}
			if err != nil && (strings.Contains(err.Error(), "hidden") || strings.Contains(err.Error(), "verifier")) {
				t.Errorf("the error contains a secret: %v", err)
			}
		})
	}
}

func TestAnAccessTokenSuppliesWhatTheIDTokenLacks(t *testing.T) {
	member := func(o *Options) { o.Organization, o.RoleClaim = "org_1", "role" }
	for name, c := range map[string]struct {
		more map[string]any
		want error
	}{
		"about the same subject": {map[string]any{"org_id": "org_1", "role": "admin"}, nil},
		"about another subject":  {map[string]any{"org_id": "org_1", "role": "admin", "sub": "bob"}, plugins.ErrUnauthenticated},
		"that is expired":        {map[string]any{"org_id": "org_1", "role": "admin", "exp": 1}, plugins.ErrUnauthenticated},
	} {
		t.Run(name, func(t *testing.T) {
			e, party := exchanging(t, nil, member)
			e.answer["access_token"] = e.token("first", c.more)
			id, err := exchange(t, party)
			if !errors.Is(err, c.want) || err == nil && (id.OrgRole != "admin" || id.OrganizationID != "org_1") {
				t.Errorf("got %+v, %v, want %v", id, err, c.want)
			}
		})
	}
}

func TestTheRequestOverridesTheConfiguredRedirect(t *testing.T) {
	for name, c := range map[string]struct {
		requested, configured, want string
		err                         error
	}{
		"both":        {"https://a.example/cb", "https://b.example/cb", "https://a.example/cb", nil},
		"the request": {"https://a.example/cb", "", "https://a.example/cb", nil},
		"settings":    {"", "https://b.example/cb", "https://b.example/cb", nil},
		"neither":     {"", "", "", plugins.ErrInvalid},
	} {
		_, party := exchanging(t, nil, func(o *Options) { o.RedirectURI = c.configured })
		address, err := party.AuthorizeURL(t.Context(), auth.AuthorizeRequest{RedirectURI: c.requested, State: "s", Nonce: "n", CodeChallenge: "c"})
		u, _ := url.Parse(address)
		if !errors.Is(err, c.err) || u.Query().Get("redirect_uri") != c.want {
			t.Errorf("%s: got %s, %v", name, address, err)
		}
	}
}

func TestWithoutAClientThereIsNoLogin(t *testing.T) {
	_, party := exchanging(t, nil, func(o *Options) { o.ClientID = "" })
	if _, err := exchange(t, party); !errors.Is(err, plugins.ErrUnimplemented) {
		t.Errorf("got %v, want unimplemented", err)
	}
}

func TestAnIncompleteExchangeIsRefusedWithoutARequest(t *testing.T) {
	whole := auth.ExchangeRequest{Code: "code", Nonce: "n", CodeVerifier: "verifier"}
	for name, lack := range map[string]func(*auth.ExchangeRequest){
		"a code":     func(r *auth.ExchangeRequest) { r.Code = "" },
		"a nonce":    func(r *auth.ExchangeRequest) { r.Nonce = "" },
		"a verifier": func(r *auth.ExchangeRequest) { r.CodeVerifier = "" },
	} {
		e, party := exchanging(t, nil, func(*Options) {})
		e.answer["id_token"] = e.idToken(map[string]any{"nonce": nil})
		req := whole
		lack(&req)
		if id, err := party.Exchange(t.Context(), req); outcome(t, err) != "refused" || e.form != nil {
			t.Errorf("without %s: got %+v, %v, and the token endpoint was called: %t", name, id, err, e.form != nil)
		}
	}
}

func TestAProviderWithoutAnEndpointForLoginsIsUnavailable(t *testing.T) {
	for _, name := range []string{"authorization_endpoint", "token_endpoint"} {
		e, party := exchanging(t, nil, func(*Options) {})
		delete(e.pages["/.well-known/openid-configuration"].(map[string]any), name)
		_, started := party.AuthorizeURL(t.Context(), auth.AuthorizeRequest{State: "s", Nonce: "n", CodeChallenge: "c"})
		_, ended := exchange(t, party)
		if outcome(t, started) != "down" || outcome(t, ended) != "down" {
			t.Errorf("without %s: %v and %v", name, started, ended)
		}
	}
}

func TestTheUserInfoEndpointSuppliesWhatTheTokensLack(t *testing.T) {
	for name, c := range map[string]struct {
		token map[string]any
		info  any
		want  string
	}{
		"nothing in the token": {nil, map[string]any{"sub": "alice", "name": "Alice", "email": "a@example.com", "email_verified": true, "role": "owner"}, "Alice a@example.com"},
		"a name in the token":  {map[string]any{"name": "A."}, map[string]any{"sub": "alice", "name": "Alice", "email": "a@example.com", "email_verified": true}, "A. a@example.com"},
		"both in the token": {map[string]any{"name": "A.", "email": "a@example.org", "email_verified": true},
			map[string]any{"sub": "alice", "name": "Alice", "email": "a@example.com", "email_verified": true}, "A. a@example.org"},
		"an address that only the token reports as verified": {map[string]any{"email_verified": true}, map[string]any{"sub": "alice", "name": "Alice", "email": "a@example.com"}, "Alice "},
		"an address that only the token reports as unverified": {map[string]any{"email_verified": false},
			map[string]any{"sub": "alice", "name": "Alice", "email": "a@example.com", "email_verified": true}, "Alice a@example.com"},
		"an address in the token that only the response reports as verified": {map[string]any{"email": "a@example.org"},
			map[string]any{"sub": "alice", "name": "Alice", "email": "a@example.com", "email_verified": true}, "Alice "},
		"an unverified address":        {nil, map[string]any{"sub": "alice", "name": "Alice", "email": "a@example.com", "email_verified": false}, "Alice "},
		"about somebody else":          {nil, map[string]any{"sub": "bob", "name": "Bob", "email": "b@example.com"}, " "},
		"a response other than claims": {nil, []string{"alice"}, " "},
	} {
		e, party := exchanging(t, nil, func(o *Options) { o.RoleClaim = "role" })
		e.pages["/.well-known/openid-configuration"].(map[string]any)["userinfo_endpoint"] = issuer + "/userinfo"
		e.pages["/userinfo"] = c.info
		e.answer["id_token"] = e.idToken(c.token)
		id, err := exchange(t, party)
		if got := id.DisplayName + " " + id.Email; err != nil || got != c.want || id.OrgRole != "" {
			t.Errorf("%s: got %q with the role %q, %v", name, got, id.OrgRole, err)
		}
	}
}
