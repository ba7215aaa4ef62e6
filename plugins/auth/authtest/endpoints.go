package authtest

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// login is a code that waits for its exchange.
type login struct {
	challenge, nonce, redirect, client string
	grant                              grant
}

func (p *Provider) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", p.document)
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", p.document)
	mux.HandleFunc("GET /oauth2/jwks", p.keySet)
	mux.HandleFunc("GET /elsewhere", p.keySet)
	mux.HandleFunc("GET /oauth2/authorize", p.authorize)
	mux.HandleFunc("POST /oauth2/token", p.token)
	mux.HandleFunc("GET /oauth2/userinfo", p.userInfo)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		fault := p.fault
		p.mu.Unlock()
		switch {
		case strings.HasSuffix(r.URL.Path, "/jwks"):
			p.asked.Add(1)
		case strings.HasPrefix(r.URL.Path, "/.well-known/"):
			p.read.Add(1)
		}
		switch fault {
		case Away:
			panic(http.ErrAbortHandler)
		case Broken:
			http.Error(w, "broken", http.StatusInternalServerError)
		case Junk:
			_, _ = w.Write([]byte("<html>not JSON</html>"))
		case Hanging:
			select {
			case <-r.Context().Done():
			case <-p.life.Done():
			}
		case Slow:
			select {
			case <-time.After(time.Second):
				mux.ServeHTTP(w, r)
			case <-r.Context().Done():
			case <-p.life.Done():
			}
		default:
			mux.ServeHTTP(w, r)
		}
	})
}

func (p *Provider) has(f Fault) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fault == f
}

// metadata is what the documents say. Its last members are such as a copy through a program loses.
func (p *Provider) metadata() map[string]any {
	issuer := p.Issuer()
	return map[string]any{
		"issuer": issuer, "jwks_uri": issuer + "/oauth2/jwks",
		"authorization_endpoint": issuer + "/oauth2/authorize", "token_endpoint": issuer + "/oauth2/token",
		"userinfo_endpoint":        issuer + "/oauth2/userinfo",
		"response_types_supported": []string{"code"}, "code_challenge_methods_supported": []string{"S256"},
		"client_id_metadata_document_supported": true,
		"x_number":                              json.Number("12345678901234567890"), "x_null": nil, "x_list": []any{}, "x_text": "<a> \u00e9 e\u0301",
		"x_nested": map[string]any{"list": []any{1, "two", map[string]any{"three": false}}},
	}
}

func (p *Provider) document(w http.ResponseWriter, r *http.Request) {
	doc := p.metadata()
	switch {
	case p.has(OtherIssuer):
		doc["issuer"] = p.Issuer() + "/other"
	case p.has(NearlyThatIssuer):
		doc["issuer"] = p.Issuer() + "/"
	case p.has(HugeDocument):
		p.endless(w)
		return
	case p.has(LargeDocument):
		doc["x_large"] = strings.Repeat("x", large)
	case p.has(DocumentElsewhere) && !strings.HasPrefix(r.Host, "localhost"):
		http.Redirect(w, r, p.elsewhere()+r.URL.Path, http.StatusFound)
		return
	}
	answer(w, http.StatusOK, doc)
}

// large is the size of an answer that ends and is not to be used.
const large = 3 << 20

// elsewhere is the same provider under another name of loopback: only the host of the address differs.
func (p *Provider) elsewhere() string {
	return strings.Replace(p.Issuer(), "127.0.0.1", "localhost", 1)
}

func (p *Provider) keySet(w http.ResponseWriter, r *http.Request) {
	switch {
	case p.has(Huge):
		p.endless(w)
	case p.has(Elsewhere) && r.URL.Path != "/elsewhere":
		http.Redirect(w, r, p.elsewhere()+"/elsewhere", http.StatusFound)
	case p.has(LargeKeySet):
		answer(w, http.StatusOK, map[string]any{"x_large": strings.Repeat("x", large), "keys": p.published()})
	default:
		answer(w, http.StatusOK, map[string]any{"keys": p.published()})
	}
}

// endless writes a key set whose white space never ends.
func (p *Provider) endless(w http.ResponseWriter) {
	_, _ = w.Write([]byte(`{"keys": [`))
	blanks := []byte(strings.Repeat(" ", 64<<10))
	for p.life.Err() == nil {
		if _, err := w.Write(blanks); err != nil {
			return
		}
	}
}

func (p *Provider) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if q.Get("response_type") != "code" || q.Get("client_id") != ClientID || !strings.HasPrefix(q.Get("redirect_uri"), RedirectURI) ||
		q.Get("code_challenge_method") != "S256" || q.Get("code_challenge") == "" || !strings.Contains(q.Get("scope"), "openid") {
		http.Error(w, "not a request for a code with PKCE", http.StatusBadRequest)
		return
	}
	code := "4/" + rand.Text() + "+=" // with characters that are escaped in forms, as codes may have
	p.mu.Lock()
	p.logins[code] = login{challenge: q.Get("code_challenge"), nonce: q.Get("nonce"), redirect: q.Get("redirect_uri"), client: q.Get("client_id"), grant: p.sessions.begin()}
	p.mu.Unlock()
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+url.Values{"code": {code}, "state": {q.Get("state")}}.Encode(), http.StatusFound)
}

func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	if p.has(TokenElsewhere) && !strings.HasPrefix(r.Host, "localhost") {
		http.Redirect(w, r, p.elsewhere()+r.URL.Path, http.StatusTemporaryRedirect)
		return
	}
	if strings.HasPrefix(r.Host, "localhost") {
		p.strayed.Add(1)
	}
	client, _, basic := r.BasicAuth()
	if !basic {
		client = r.PostFormValue("client_id")
	}
	if r.PostFormValue("grant_type") == "refresh_token" {
		p.refresh(w, r.PostFormValue("refresh_token"), client)
		return
	}
	p.mu.Lock()
	l, ok := p.logins[r.PostFormValue("code")]
	delete(p.logins, r.PostFormValue("code"))
	p.mu.Unlock()
	digest := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	if !ok || r.PostFormValue("grant_type") != "authorization_code" || client != l.client ||
		r.PostFormValue("redirect_uri") != l.redirect || encode(digest[:]) != l.challenge {
		answer(w, http.StatusBadRequest, map[string]any{"error": "invalid_grant"})
		return
	}
	p.mu.Lock()
	refresh := p.sessions.renew(l.grant)
	p.mu.Unlock()
	p.grantTokens(w, l.grant, refresh, l.nonce)
}

// grantTokens answers with the tokens of a login, with a refresh token unless it is empty.
func (p *Provider) grantTokens(w http.ResponseWriter, g grant, refresh, nonce string) {
	access, id := p.accessToken(g), p.idToken(g, nonce)
	p.mu.Lock()
	p.sessions.access[access] = true
	p.given.add("an access token of a login", access)
	p.given.add("a refresh token", refresh)
	if text, ok := id.(string); ok {
		p.given.add("an id token", text)
	}
	p.mu.Unlock()
	tokens := map[string]any{"token_type": "Bearer", "expires_in": 600, "access_token": access, "id_token": id}
	if refresh != "" {
		tokens["refresh_token"] = refresh
	}
	answer(w, http.StatusOK, tokens)
}

// accessToken says no more of the person than the id token does.
func (p *Provider) accessToken(g grant) string {
	if p.has(OtherAccessToken) {
		return p.Token(map[string]any{"sub": "user_mallory", "name": "Mallory", "email": "mallory@example.com", "org_id": Organization})
	}
	if p.has(NamelessIDToken) || p.has(OtherUserInfo) {
		return p.Token(map[string]any{"sub": g.subject, "name": nil, "email": nil, "email_verified": nil})
	}
	return p.Token(map[string]any{"sub": g.subject})
}

// idToken is the id token of a login, wrong in the way of the fault.
func (p *Provider) idToken(g grant, nonce string) any {
	claims := map[string]any{"sub": g.subject, "sid": g.session, "aud": ClientID, "nonce": nilIfEmpty(nonce), "scope": nil}
	p.mu.Lock()
	forge := p.forgeIDToken
	p.mu.Unlock()
	switch {
	case forge != nil:
		return forge(p.claims([]map[string]any{claims}))
	case p.has(NoIDToken):
		return nil
	case p.has(ForAnotherClient):
		claims["aud"] = "client_other"
	case p.has(OldIDToken):
		claims["exp"] = time.Now().Add(-2 * time.Minute).Unix()
	case p.has(OtherOrgIDToken):
		claims["org_id"] = "org_other"
	case p.has(NamelessIDToken), p.has(OtherUserInfo):
		claims["name"], claims["email"], claims["email_verified"] = nil, nil, nil
	case p.has(ForgedIDToken):
		_, kid := p.key()
		return compact(header(kid), p.claims([]map[string]any{claims}), rs256(p.keys.forger))
	}
	return p.Token(claims)
}

func (p *Provider) userInfo(w http.ResponseWriter, r *http.Request) {
	if !strings.HasPrefix(r.Header.Get("Authorization"), "Bearer ") {
		http.Error(w, "no token", http.StatusUnauthorized)
		return
	}
	p.mu.Lock()
	subject, good := p.sessions.subjectOf(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
	p.mu.Unlock()
	if !good {
		http.Error(w, "the session has ended", http.StatusUnauthorized)
		return
	}
	if p.has(OtherUserInfo) {
		subject = "user_mallory"
	}
	answer(w, http.StatusOK, map[string]any{"sub": subject, "name": "Alice", "email": "alice@example.com", "email_verified": true, RoleClaim: "owner"})
}

// published is the key set.
func (p *Provider) published() []any {
	key, kid := p.key()
	keys := []any{jwkOf(p.keys.encryption, "encryption", "enc"), jwkOf(key, kid, "sig"), jwkOfCurve(p.keys.ownCurve), jwkOfEdwards(p.keys.ownEdwards)}
	p.mu.Lock()
	added := p.added && !p.rotated
	p.mu.Unlock()
	if added {
		keys = append(keys, jwkOf(p.keys.second, "second", "sig"))
	}
	if p.has(OddKeys) {
		keys = append([]any{
			map[string]any{"kty": "odd", "kid": "odd"}, map[string]any{"kty": "RSA", "kid": "empty", "n": "", "e": ""},
			map[string]any{"kty": "EC", "crv": "P-256", "kid": "off", "x": "AAAA", "y": "AAAA"}, map[string]any{},
		}, keys...)
	}
	return keys
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}
