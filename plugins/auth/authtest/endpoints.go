package authtest

import (
	"crypto"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// fault is a way in which a provider misbehaves.
type fault struct {
	name string
	at   string // prefix of the affected paths; "" for all
	act  func(p *Provider, w http.ResponseWriter, r *http.Request, honest http.Handler)
}

// The provider's paths.
const (
	documentPath   = "/.well-known/"
	keysPath       = "/oauth2/jwks" // a prefix: the metadata has the full path
	tokenPath      = "/oauth2/token"
	userInfoPath   = "/oauth2/userinfo"
	introspectPath = "/oauth2/introspect"
	strangePath    = "/files/of/somebody" // a file that somebody has uploaded: the forger's keys
)

const large = 3 << 20 // size in bytes of a response that is finite but too large to use

func answering(status int, body string) func(*Provider, http.ResponseWriter, *http.Request, http.Handler) {
	return func(_ *Provider, w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
}

// changing returns a handler that sends the requested document (the key set or the metadata) with changes.
func changing(change func(p *Provider, doc map[string]any)) func(*Provider, http.ResponseWriter, *http.Request, http.Handler) {
	return func(p *Provider, w http.ResponseWriter, r *http.Request, _ http.Handler) {
		doc := p.metadata()
		if strings.HasPrefix(r.URL.Path, keysPath) {
			doc = map[string]any{"keys": p.keySet()}
		}
		change(p, doc)
		answer(w, http.StatusOK, doc)
	}
}

func endless(p *Provider, w http.ResponseWriter, _ *http.Request, _ http.Handler) {
	_, _ = w.Write([]byte(`{"keys": [`))
	blanks := []byte(strings.Repeat(" ", 64<<10))
	for p.life.Err() == nil {
		if _, err := w.Write(blanks); err != nil {
			return
		}
	}
}

func stalling(p *Provider, w http.ResponseWriter, r *http.Request, honest http.Handler) {
	stalled := p.now().stalled
	select {
	case p.reached <- struct{}{}:
	default:
	}
	select {
	case <-stalled:
		if r.URL.Path == tokenPath { // completing the request would use up a refresh token that nobody is waiting for
			panic(http.ErrAbortHandler)
		}
		honest.ServeHTTP(w, r)
	case <-r.Context().Done():
	case <-p.life.Done():
	}
}

func delaying(p *Provider, w http.ResponseWriter, r *http.Request, honest http.Handler) {
	select {
	case <-time.After(time.Second):
		honest.ServeHTTP(w, r)
	case <-r.Context().Done():
	case <-p.life.Done():
	}
}

// elsewhere redirects to the same provider under another loopback host name, so only the host of the URL differs.
func elsewhere(p *Provider, w http.ResponseWriter, r *http.Request, honest http.Handler) {
	if strings.HasPrefix(r.Host, "localhost") {
		p.set(func(s *state) { s.strayed++ })
		honest.ServeHTTP(w, r)
		return
	}
	http.Redirect(w, r, strings.Replace(p.Issuer(), "127.0.0.1", "localhost", 1)+r.URL.Path, http.StatusTemporaryRedirect)
}

func cutting(_ *Provider, w http.ResponseWriter, _ *http.Request, _ http.Handler) {
	w.Header().Set("Content-Length", "1000")
	_, _ = w.Write([]byte(`{"keys": [{"kty"`))
	panic(http.ErrAbortHandler)
}

// outages returns the faults that make the keys, the metadata or both unusable.
func outages() []*fault {
	unreachable := func(*Provider, http.ResponseWriter, *http.Request, http.Handler) { panic(http.ErrAbortHandler) }
	all := []*fault{
		{"is unavailable", "", unreachable}, {"returns 500", "", answering(500, `{"error":"server_error"}`)}, {"returns 503", "", answering(503, "")},
		{"returns 404", "", answering(404, "not found")}, {"returns 429", "", answering(429, `{}`)}, {"returns HTML", "", answering(200, "<html>please log in</html>")},
		{"returns nothing", "", answering(200, "")}, {"returns null", "", answering(200, "null")}, {"returns a list", "", answering(200, `[]`)},
		{"returns a key set that is text", keysPath, answering(200, `{"keys": "none"}`)}, {"never responds", "", stalling},
		{"cuts its responses off", "", cutting}, {"never ends its key set", keysPath, endless}, {"never ends its metadata", documentPath, endless},
		{"writes a key set of 3 MiB", keysPath, changing(func(_ *Provider, doc map[string]any) { doc["x_large"] = strings.Repeat("x", large) })},
		{"writes metadata of 3 MiB", documentPath, changing(func(_ *Provider, doc map[string]any) { doc["x_large"] = strings.Repeat("x", large) })},
		{"redirects to another host for its keys", keysPath, elsewhere}, {"redirects to another host for its metadata", documentPath, elsewhere},
	}
	for name, change := range map[string]func(string) string{
		"another issuer": func(string) string { return "https://id.example.com" }, "the issuer with an extra slash": func(s string) string { return s + "/" },
		"no issuer": func(string) string { return "" }, "the issuer under another scheme": func(s string) string { return strings.Replace(s, "http:", "https:", 1) },
	} {
		all = append(all, &fault{"writes documents about " + name, documentPath, changing(func(_ *Provider, doc map[string]any) { doc["issuer"] = change(doc["issuer"].(string)) })})
	}
	slices.SortFunc(all, func(a, b *fault) int { return strings.Compare(a.name, b.name) })
	return all
}

// outagesOf returns the faults that make the endpoint at path unusable.
func outagesOf(path string) (all []*fault) {
	for _, f := range outages() {
		if f.at == "" {
			all = append(all, &fault{f.name, path, f.act})
		}
	}
	return append(all, &fault{"redirects to another host", path, elsewhere})
}

func (p *Provider) handler() http.Handler {
	mux := http.NewServeMux()
	document := func(w http.ResponseWriter, _ *http.Request) {
		p.set(func(s *state) { s.document = time.Now() })
		answer(w, http.StatusOK, p.metadata())
	}
	mux.HandleFunc("GET "+documentPath+"openid-configuration", document)
	mux.HandleFunc("GET "+documentPath+"oauth-authorization-server", document)
	mux.HandleFunc("GET "+keysPath+"/"+p.Organization, func(w http.ResponseWriter, _ *http.Request) {
		p.set(func(s *state) { s.read = append(s.read, reading{time.Now(), s.published}) })
		w.Header().Set("Content-Type", "application/jwk-set+json") // RFC 7517 section 8.5.2
		answer(w, http.StatusOK, map[string]any{"keys": p.keySet()})
	})
	mux.HandleFunc("GET /oauth2/authorize", p.authorize)
	mux.HandleFunc("POST "+tokenPath, p.token)
	mux.HandleFunc("GET "+userInfoPath, p.userInfo)
	mux.HandleFunc("POST "+introspectPath, p.introspect)
	mux.HandleFunc("GET "+strangePath, func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, p.forgedKeys()) })
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path, own := strings.CutPrefix(r.URL.Path, p.path)
		if !own { // RFC 8414 section 3.1: the issuer's path comes last
			if path, own = strings.CutSuffix(r.URL.Path, p.path); !own || !strings.HasPrefix(path, documentPath) {
				http.NotFound(w, r)
				return
			}
		}
		r.URL.Path = path
		switch {
		case strings.HasPrefix(path, keysPath):
			p.set(func(s *state) { s.asked = append(s.asked, time.Now()) })
		case strings.HasPrefix(path, documentPath):
			p.set(func(s *state) { s.documents++ })
		}
		now := p.now()
		if now.caching != "" {
			w.Header().Set("Cache-Control", now.caching)
		}
		if f := now.fault; f != nil && strings.HasPrefix(path, f.at) {
			f.act(p, w, r, mux)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// metadata returns the content of the metadata documents. Its last members are values that a lossy re-encoding would
// change.
func (p *Provider) metadata() map[string]any {
	issuer := p.Issuer()
	return map[string]any{
		"issuer": issuer, "jwks_uri": issuer + keysPath + "/" + p.Organization, "authorization_endpoint": issuer + "/oauth2/authorize?" + p.tenant(), "token_endpoint": issuer + tokenPath + "?" + p.tenant(),
		"userinfo_endpoint": issuer + userInfoPath, "introspection_endpoint": issuer + introspectPath,
		"response_types_supported": []string{"code"}, "code_challenge_methods_supported": []string{"S256"}, "client_id_metadata_document_supported": true,
		"x_number": json.Number("12345678901234567890"), "x_null": nil, "x_list": []any{}, "x_text": "<a> \u00e9 e\u0301",
		"x_nested": map[string]any{"list": []any{1, "two", map[string]any{"three": false}}},
	}
}

func (p *Provider) keySet() []any {
	now := p.now()
	var all []any
	if now.odd {
		all = append(all, map[string]any{"kty": "odd", "kid": "odd"}, map[string]any{"kty": "RSA", "kid": "empty", "n": "", "e": ""},
			map[string]any{"kty": "EC", "crv": "P-256", "kid": "off", "x": "AAAA", "y": "AAAA"}, map[string]any{})
	}
	for _, s := range now.published {
		all = append(all, s.jwk())
	}
	return all
}

// login is a code that has not been exchanged yet.
type login struct {
	challenge, nonce, redirect string
	grant                      grant
}

// tenant returns the query of the provider's endpoints, which requests must keep (RFC 6749 section 3).
func (p *Provider) tenant() string { return url.Values{"tenant": {p.Organization + "/+&é"}}.Encode() }

// addressed reports whether a request keeps the query of the endpoint.
func (p *Provider) addressed(r *http.Request) bool {
	return r.URL.Query().Get("tenant") == p.Organization+"/+&é"
}

func (p *Provider) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if !p.addressed(r) || q.Get("response_type") != "code" || q.Get("client_id") != p.ClientID || !strings.HasPrefix(q.Get("redirect_uri"), RedirectURI) ||
		q.Get("code_challenge_method") != "S256" || q.Get("code_challenge") == "" || !strings.Contains(q.Get("scope"), "openid") {
		http.Error(w, "not a request for a code with PKCE", http.StatusBadRequest)
		return
	}
	code := "4/" + rand.Text() + "+=" // with characters that must be escaped in forms: real codes may contain them
	p.set(func(s *state) {
		s.logins[code] = &login{q.Get("code_challenge"), q.Get("nonce"), q.Get("redirect_uri"), s.begin()}
	})
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+url.Values{"code": {code}, "state": {q.Get("state")}}.Encode(), http.StatusFound)
}

func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	client, _, basic := r.BasicAuth()
	if !basic {
		client = r.PostFormValue("client_id")
	}
	if !p.addressed(r) {
		answer(w, http.StatusBadRequest, map[string]any{"error": "invalid_client"})
		return
	}
	if r.PostFormValue("grant_type") == "refresh_token" {
		p.refresh(w, r.PostFormValue("refresh_token"), client)
		return
	}
	var l *login
	var refresh string
	p.set(func(s *state) {
		l = s.logins[r.PostFormValue("code")]
		delete(s.logins, r.PostFormValue("code"))
	})
	if l == nil || r.PostFormValue("grant_type") != "authorization_code" || client != p.ClientID || r.PostFormValue("redirect_uri") != l.redirect ||
		encode(hashed(crypto.SHA256, []byte(r.PostFormValue("code_verifier")))) != l.challenge {
		answer(w, http.StatusBadRequest, map[string]any{"error": "invalid_grant"})
		return
	}
	p.set(func(s *state) { refresh = s.renew(l.grant) })
	p.grantTokens(w, l.grant, refresh, l.nonce)
}

// introspect sends the response selected by p.inactive (RFC 7662).
func (p *Provider) introspect(w http.ResponseWriter, r *http.Request) {
	client, secret, basic := r.BasicAuth()
	if !basic {
		client, secret = r.PostFormValue("client_id"), r.PostFormValue("client_secret")
	}
	body := map[string]any{"active": true, "client_id": p.ClientID}
	switch kind := p.now().inactive; kind {
	case "is not active":
		body = map[string]any{"active": false}
	case "is about another subject":
		body["sub"] = "user_mallory"
	case "":
	default:
		_, _ = fmt.Fprint(w, kind) // an invalid response, sent literally
		return
	}
	if client != p.ClientID || secret != p.ClientSecret || r.PostFormValue("token") == "" {
		http.Error(w, "unknown client", http.StatusUnauthorized)
		return
	}
	answer(w, http.StatusOK, body)
}

func (p *Provider) userInfo(w http.ResponseWriter, r *http.Request) {
	var info map[string]any
	p.set(func(s *state) { info = s.info(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")) })
	if info == nil {
		http.Error(w, "the session has ended", http.StatusUnauthorized)
		return
	}
	answer(w, http.StatusOK, info)
}

func answer(w http.ResponseWriter, status int, body any) {
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "application/json")
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}
