package harness

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"
)

// Provider is an OpenID provider that issues any claims that a test needs. It does not ask for passwords.
type Provider struct {
	Issuer string
	key    *rsa.PrivateKey

	mu                        sync.Mutex
	idToken, access, userInfo map[string]any // claims in addition to the required ones
	nonces                    map[string]string
}

// StartProvider starts a Provider. It stops when the test ends.
func StartProvider(t *testing.T) *Provider {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	p := &Provider{key: key, nonces: map[string]string{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, map[string]any{
			"issuer": p.Issuer, "jwks_uri": p.Issuer + "/keys", "authorization_endpoint": p.Issuer + "/authorize",
			"token_endpoint": p.Issuer + "/token", "userinfo_endpoint": p.Issuer + "/userinfo",
		})
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		encode := base64.RawURLEncoding.EncodeToString
		reply(w, map[string]any{"keys": []any{map[string]any{
			"kty": "RSA", "alg": "RS256", "use": "sig", "kid": "1", "n": encode(key.N.Bytes()), "e": encode(big.NewInt(int64(key.E)).Bytes()),
		}}})
	})
	mux.HandleFunc("GET /authorize", p.authorize)
	mux.HandleFunc("POST /token", p.token)
	mux.HandleFunc("GET /userinfo", func(w http.ResponseWriter, _ *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		reply(w, p.userInfo)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	p.Issuer = server.URL
	return p
}

// State sets the provider's claims about the next person who logs in: the claims in the ID token, in the access token
// and in the UserInfo response.
func (p *Provider) State(idToken, access, userInfo map[string]any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idToken, p.access, p.userInfo = idToken, access, userInfo
}

// Token returns an access token for /mcp and /v1 with the given claims.
func (p *Provider) Token(claims map[string]any) string {
	return p.sign(map[string]any{"aud": audience}, claims)
}

// LogIn logs a browser in to a server whose clientId is "app". It returns a header with the session cookie.
func (p *Provider) LogIn(t *testing.T, s *Server) string {
	t.Helper()
	b := NewBrowser(t)
	b.Stop = s.URL + "/v1/auth/session"
	b.Visit(t, s.URL+"/v1/auth/authorize?returnTo=/v1/auth/session")
	cookie := b.Cookie(t, "service_session", s.URL)
	if cookie == "" {
		t.Fatalf("the login ended at %s", b.At)
	}
	return "Cookie: service_session=" + cookie
}

func (p *Provider) authorize(w http.ResponseWriter, r *http.Request) {
	code, q := rand.Text(), r.URL.Query()
	p.mu.Lock()
	p.nonces[code] = q.Get("nonce")
	p.mu.Unlock()
	back := url.Values{"code": {code}, "state": {q.Get("state")}}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	nonce, known := p.nonces[r.FormValue("code")]
	if !known {
		http.Error(w, `{"error":"invalid_grant"}`, http.StatusBadRequest)
		return
	}
	reply(w, map[string]any{
		"token_type": "Bearer", "expires_in": 600, "access_token": p.sign(map[string]any{"aud": audience}, p.access),
		"id_token": p.sign(map[string]any{"aud": "app", "nonce": nonce}, p.idToken),
	})
}

// sign returns a token for alice, unless the claims name another subject. Later claims override earlier ones.
func (p *Provider) sign(claims ...map[string]any) string {
	all := map[string]any{"iss": p.Issuer, "sub": "alice", "iat": time.Now().Unix(), "exp": time.Now().Add(10 * time.Minute).Unix()}
	for _, some := range claims {
		maps.Copy(all, some)
	}
	payload, err := json.Marshal(all)
	if err != nil {
		panic(err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	signed := encode([]byte(`{"alg":"RS256","kid":"1"}`)) + "." + encode(payload)
	sum := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(nil, p.key, crypto.SHA256, sum[:])
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf("%s.%s", signed, encode(signature))
}

func reply(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body)
}
